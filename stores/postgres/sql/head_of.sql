-- $1 seq.
-- The first row before a pending one that failed, of its key and handler: by the index of heads. OFFSET 0 keeps the planner from looking for
-- the least seq along the primary key.
SELECT (
    SELECT min("seq") FROM (
        SELECT h."seq" FROM {event} AS h
        WHERE coalesce(h."ordering_key", h."aggregate_id") = coalesce(e."ordering_key", e."aggregate_id") COLLATE "C"
          AND h."aside" IN (2, 3) AND h."seq" < e."seq" AND h."handler" IS NOT DISTINCT FROM e."handler"
        OFFSET 0) AS heads)
FROM {event} AS e
WHERE e."seq" = $1::bigint AND e."status" IN (0, 2)
