UPDATE {partition} SET node_id = NULL
WHERE node_id IS NOT NULL AND node_id NOT IN (SELECT node_id FROM {node})
