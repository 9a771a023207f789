
    AND TIMESTAMPDIFF(MICROSECOND, '2000-01-01', `expires_at`) >= {last}
