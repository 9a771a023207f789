DELETE FROM {node} WHERE `expires_at` <= UTC_TIMESTAMP(6)
