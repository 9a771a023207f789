-- A node that leaves gives its partitions back, so an owner that is not registered has died.
UPDATE {partition} SET node_id = '?'
WHERE node_id <> '?' AND node_id NOT IN (SELECT node_id FROM {node})
