SELECT n.`node_id`, n.`mode`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', n.`started_at`),
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), n.`expires_at`),
    (SELECT COUNT(*) FROM {partition} p WHERE p.`node_id` = n.`node_id`),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', n.`expires_at`), n.`lease`,
    n.`figures`
FROM {node} n ORDER BY n.`started_at`, n.`node_id`
