SELECT node_id, mode, started_at, expires_at - {now},
       EXISTS (SELECT 1 FROM {partition} AS owned WHERE owned.partition = 0 AND owned.node_id = {node}.node_id)
FROM {node}
ORDER BY started_at, node_id
