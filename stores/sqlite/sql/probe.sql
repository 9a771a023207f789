-- The owner of the partitions, and three flags: an owner of any has died, a node is to be evicted, this node is
-- registered.
SELECT nullif({partition}.node_id, '?'), {partition}.epoch, {node}.expires_at - {now},
       EXISTS (SELECT 1 FROM {partition} AS died WHERE died.node_id = '?'),
       EXISTS (SELECT 1 FROM {node} AS dead WHERE dead.expires_at <= {now}),
       EXISTS (SELECT 1 FROM {node} AS self WHERE self.node_id = ?1)
FROM {partition} LEFT JOIN {node} USING (node_id)
WHERE {partition}.partition = 0
