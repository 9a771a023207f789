-- The first look of acquire, without a lock: it tells if anything has to be changed, and the answer if not. A standby asks this
-- every second, so it must cost no write. At most one other node owns partitions, so both MIN() speak of the same one.
SELECT
    EXISTS (SELECT 1 FROM {node} WHERE `node_id` = {id}) AS `alive`,
    EXISTS (SELECT 1 FROM {node} WHERE `expires_at` <= UTC_TIMESTAMP(6)) AS `expired_nodes`,
    COUNT(CASE WHEN p.`node_id` = {id} THEN 1 END) AS `owned`,
    COUNT(*) AS `partitions`,
    COALESCE(MAX(p.`epoch`), 0) AS `epoch`,
    MIN(CASE WHEN n.`node_id` <> {id} THEN n.`node_id` END) AS `owner`,
    MIN(CASE WHEN n.`node_id` <> {id} THEN TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), n.`expires_at`) END) AS `owner_left`,
    COUNT(CASE WHEN n.`node_id` IS NULL THEN p.`node_id` END) AS `abandoned`
FROM {partition} p LEFT JOIN {node} n ON n.`node_id` = p.`node_id`
