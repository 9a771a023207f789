-- The partitions that are free, the node's own, or of a node that is gone, and their epochs; then the nodes in the order in which they
-- joined. One statement, so that all of it was so at one moment.
SELECT partition, epoch, node_id, NULL AS mode, NULL AS lease_left, NULL AS started_at
FROM {partition}
WHERE node_id IS NULL OR node_id = ?1 OR node_id NOT IN (SELECT node_id FROM {node})
UNION ALL
SELECT NULL, NULL, node_id, mode, expires_at - {now}, started_at
FROM {node}
ORDER BY started_at, node_id
