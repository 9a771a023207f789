-- The number of partitions without an owner, of pending rows, and of pending rows in the fullest partition.
WITH pending (partition) AS (
    SELECT partition FROM {event} INDEXED BY {event_ready} WHERE {ready}
    UNION ALL
    SELECT partition FROM {event} INDEXED BY {event_due} WHERE {timed}
),
counted (partition, rows) AS (SELECT partition, count(*) FROM pending GROUP BY partition)
SELECT (SELECT count(*) FROM {partition} WHERE node_id IS NULL OR node_id NOT IN (SELECT node_id FROM {node})),
       coalesce(sum(rows), 0),
       coalesce(max(rows) FILTER (WHERE partition IS NOT NULL), 0)
FROM counted
