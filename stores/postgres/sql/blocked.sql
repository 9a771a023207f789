-- $1 above, $2 limit.
-- Pending rows whose key has a head, and all DEAD rows, from the last to the first of their key and handler: of the pending
-- ones, as many as were passed before a head wait behind it. Each pending row asks the index of heads once and the few that
-- are left are sorted, so that neither many heads nor many rows of one key multiply.
-- Each OFFSET 0 keeps the planner from turning the look-up into a join, which would read whole indexes. IS TRUE keeps it from the primary
-- key, where it would pass over all that was delivered.
WITH concerned AS MATERIALIZED (
    SELECT e."seq", e."status", coalesce(e."ordering_key", e."aggregate_id") COLLATE "C" AS "key", e."handler"
    FROM {ready} AS e
    WHERE "seq" > $1::bigint AND EXISTS (
        SELECT FROM {event} AS h
        WHERE coalesce(h."ordering_key", h."aggregate_id") = coalesce(e."ordering_key", e."aggregate_id") COLLATE "C"
          AND h."aside" IN (2, 3)
        OFFSET 0)
    UNION ALL
    SELECT e."seq", e."status", coalesce(e."ordering_key", e."aggregate_id") COLLATE "C", e."handler"
    FROM {event} AS e
    WHERE {is_timed} AND ("seq" > $1::bigint) IS TRUE AND EXISTS (
        SELECT FROM {event} AS h
        WHERE coalesce(h."ordering_key", h."aggregate_id") = coalesce(e."ordering_key", e."aggregate_id") COLLATE "C"
          AND h."aside" IN (2, 3)
        OFFSET 0)
    UNION ALL
    SELECT "seq", "status", coalesce("ordering_key", "aggregate_id") COLLATE "C", "handler"
    FROM {event}
    WHERE "aside" = 3 AND "seq" > $1::bigint AND coalesce("ordering_key", "aggregate_id") IS NOT NULL
), counted AS (
    SELECT "seq", "status", "key", count(*) FILTER (WHERE "status" <> 3) OVER (
        PARTITION BY "key", "handler" ORDER BY "seq" DESC
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS "waiting"
    FROM concerned
), heads AS MATERIALIZED (
    SELECT "seq", "key", "waiting" FROM counted
    WHERE "status" IN (2, 3) AND "waiting" > 0
    ORDER BY "seq"
    LIMIT $2::bigint
)
SELECT e."seq", e."event_id", e."event_type", heads."key", e."handler", e."status", e."attempts",
    CASE WHEN e."status" = 2 AND e."available_at" > now() THEN e."available_at" END AS "due_at", e."last_error",
    least(heads."waiting", {most_counted}) AS "waiting", now() AS "now"
FROM heads CROSS JOIN LATERAL (SELECT * FROM {event} WHERE "seq" = heads."seq" OFFSET 0) AS e
ORDER BY heads."seq"
