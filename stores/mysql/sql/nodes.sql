SELECT `node_id`, `mode`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `started_at`),
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), `expires_at`),
    EXISTS (SELECT 1 FROM {partition} p WHERE p.`partition` = 0 AND p.`node_id` = n.`node_id`)
FROM {node} n ORDER BY `started_at`, `node_id`
