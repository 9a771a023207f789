SELECT TIMESTAMPDIFF(MICROSECOND, '2000-01-01', `expires_at`) FROM {node} WHERE `node_id` = {id}
