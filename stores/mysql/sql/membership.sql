-- The nodes as reclaim finds them: true if any lease has ended, true if this node is registered, the next end of another's lease.
SELECT
    COUNT(CASE WHEN `expires_at` <= UTC_TIMESTAMP(6) THEN 1 END) AS `expired`,
    COUNT(CASE WHEN `node_id` = {id} THEN 1 END) AS `registered`,
    MIN(CASE WHEN `node_id` <> {id} AND `expires_at` > UTC_TIMESTAMP(6) THEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), `expires_at`) END) AS `next_expiry`
FROM {node}
