SELECT n."node_id", n."mode", n."started_at", n."expires_at",
    (SELECT count(*) FROM {partition} p WHERE p."node_id" = n."node_id") AS "partitions", clock_timestamp() AS "now", n."lease",
    n."figures"
FROM {node} n
ORDER BY n."started_at", n."node_id"
