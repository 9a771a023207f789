SELECT node_id, mode, started_at, expires_at - {now},
       (SELECT count(*) FROM {partition} AS owned WHERE owned.node_id = {node}.node_id),
       expires_at, lease, figures
FROM {node}
ORDER BY started_at, node_id
