-- What reclaim tells of the nodes: whether any lease has ended, whether this node's has not, when another's may.
SELECT
    COUNT(CASE WHEN `expires_at` <= UTC_TIMESTAMP(6) THEN 1 END) AS `expired`,
    COUNT(CASE WHEN `node_id` = {id} AND `expires_at` > UTC_TIMESTAMP(6) THEN 1 END) AS `registered`,
    MIN(CASE WHEN `node_id` <> {id} THEN GREATEST(TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), `expires_at`), 0) END) AS `next_expiry`
FROM {node}
