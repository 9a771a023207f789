-- $1 above, $2 up to, $3 rows: sets rows aside that have waited for long among many that were delivered: rows of a key that waits
-- for an event that failed, or of a route that is paused. The index of rows set aside finds them from then on, and no reader has to
-- pass over the delivered rows around them. They wait for no time: one before the creation is none. If they are many, they stay:
-- then little is passed over. A row that is being changed is left for another time.
WITH "window" AS MATERIALIZED (
    SELECT "seq", {is_plain} AS "is_plain", "created_at" < now() - interval '10 seconds' AND "created_at" >= timestamptz '0001-01-01 00:00:00+00' AS "is_old" FROM {event}
    WHERE "seq" > $1::bigint AND "seq" <= $2::bigint
    ORDER BY "seq"
    LIMIT $3::bigint
), old AS MATERIALIZED (
    SELECT "seq" FROM {event}
    WHERE "seq" = ANY (ARRAY(SELECT "seq" FROM "window" WHERE "is_plain" AND "is_old"))
      AND {is_plain}
      AND (SELECT count(*) = $3::bigint AND count(*) FILTER (WHERE "is_plain") * 20 <= $3::bigint FROM "window")
    ORDER BY "seq"
    FOR UPDATE SKIP LOCKED
), moved AS (
    UPDATE {event} SET "available_at" = "created_at" - interval '1 microsecond'
    WHERE "seq" = ANY (ARRAY(SELECT "seq" FROM old))
    RETURNING 1
)
SELECT count(*) AS "moved" FROM moved
