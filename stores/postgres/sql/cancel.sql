-- Ends pending rows without a delivery: $1 seqs. Rows that somebody is changing at this moment are passed over and said to be, marked by false; each is then tried by itself.
-- A wait for a row while another is held could close a circle with a settle, which has an order of its own.
WITH free AS MATERIALIZED (
    SELECT "seq" FROM {event} WHERE "seq" = ANY ($1::bigint[]) AND "status" IN (0, 2) ORDER BY "seq" FOR UPDATE{skip_locked}
), changed AS (
    UPDATE {event} SET "status" = 1, "done_at" = clock_timestamp(), "last_error" = {cancelled}, "locked_by" = NULL
    WHERE "seq" = ANY (ARRAY(SELECT "seq" FROM free))
    RETURNING "seq"
), intervention AS (
    -- One row counts for the whole table, so that two operators never wait for each other in a circle.
    -- The read point stays: a cancelled row is not pending any more.
    UPDATE {partition} SET "interventions" = "interventions" + 1, "read_point_interventions" = "read_point_interventions" + 1
    WHERE "partition" = 0 AND EXISTS (SELECT FROM changed)
)
SELECT "seq", true FROM changed
UNION ALL
SELECT "seq", false FROM {event} WHERE "seq" = ANY ($1::bigint[]) AND "status" IN (0, 2) AND "seq" NOT IN (SELECT "seq" FROM free)
