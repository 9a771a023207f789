-- All partitions as a node sees them: 0 free, 1 its own, 2 free, and the owner before died, 3 another's; and their epochs.
SELECT p.`partition`,
    CASE WHEN p.`node_id` IS NULL THEN 0 WHEN p.`node_id` = {id} THEN 1 WHEN n.`node_id` IS NULL THEN 2 ELSE 3 END,
    p.`epoch`
FROM {partition} p LEFT JOIN {node} n ON n.`node_id` = p.`node_id`
