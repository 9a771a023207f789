SELECT `node_id`, `mode` FROM {node} WHERE `expires_at` > UTC_TIMESTAMP(6) ORDER BY `started_at`
