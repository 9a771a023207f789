-- From where the pending rows are alone, as in backlog.sql. A row without a partition is pending in none.
WITH pending AS (
    SELECT "partition" FROM {ready} AS e
    UNION ALL
    SELECT "partition" FROM {event} WHERE {is_timed}
), by_partition AS (
    SELECT "partition", count(*) AS "rows" FROM pending GROUP BY "partition"
)
SELECT
    (SELECT count(*) FROM {partition} p
     WHERE NOT EXISTS (SELECT FROM {node} n WHERE n."node_id" = p."node_id")) AS "unowned",
    coalesce(sum("rows"), 0)::bigint AS "pending",
    coalesce(max("rows") FILTER (WHERE "partition" IS NOT NULL), 0) AS "most_pending"
FROM by_partition
