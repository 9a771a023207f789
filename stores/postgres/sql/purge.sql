-- $1 state, or NULL for all, $2 age in microseconds, $3 above, $4 limit, $5 key, or NULL for any.
-- Rows that say no end, as those of an adopted table may, count from their creation.
-- A window of the table in the order of seq, and the rows in it that are old enough. The state is asked again where rows are deleted:
-- a DEAD one may have been replayed meanwhile.
WITH "window" AS MATERIALIZED (
    SELECT "seq", "status", "created_at", "done_at", coalesce("ordering_key", "aggregate_id") AS "key" FROM {event}
    WHERE "seq" > $3::bigint
    ORDER BY "seq"
    LIMIT $4::bigint
), removed AS (
    DELETE FROM {event}
    WHERE "seq" = ANY (ARRAY(
        SELECT "seq" FROM "window"
        WHERE CASE WHEN $1::smallint IS NULL THEN "created_at" ELSE coalesce("done_at", "created_at") END
            <= now() - $2::bigint * interval '1 microsecond'
            AND ($5::text IS NULL OR "key" = $5::text)
    )) AND ($1::smallint IS NULL OR "status" = $1::smallint)
    RETURNING 1
), intervention AS (
    -- The rows behind DEAD ones may go on.
    UPDATE {partition} SET "interventions" = "interventions" + 1, "read_point_interventions" = "read_point_interventions" + 1
    WHERE "partition" = 0 AND $1::smallint IS DISTINCT FROM 1 AND EXISTS (SELECT FROM removed)
)
-- DONE rows that come back when the server crashes leave with the next purge, so nobody waits for the disk.
SELECT (SELECT count(*) FROM removed) AS "removed", count(*) AS "seen", max("seq") AS "last",
    -- Rows that a clock has stamped ahead say nothing about those behind them.
    coalesce(bool_and(least("created_at", "done_at") > now() - $2::bigint * interval '1 microsecond'
        AND least("created_at", "done_at") <= now() + interval '1 hour'), true) AS "all_are_young",
    CASE WHEN $1::smallint = 1 THEN set_config('synchronous_commit', 'off', true) END AS "commit"
FROM "window"
