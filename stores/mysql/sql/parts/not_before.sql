-- Added to renew.sql: only a lease that ends no earlier than the last confirmed renewal left it.

    AND TIMESTAMPDIFF(MICROSECOND, '2000-01-01', `expires_at`) >= {last}
