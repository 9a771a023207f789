WITH changed AS (
    UPDATE {event}
    SET "status" = 0, "attempts" = 0, "replays" = least("replays", 2147483646) + 1, "available_at" = NULL, "done_at" = NULL,
        "last_error" = NULL, "locked_by" = NULL, "delivered_as" = NULL
    WHERE "seq" = ANY ($1::bigint[]) AND "status" = 3
    RETURNING "seq"
), intervention AS (
    -- One row counts for the whole table, so that two operators never wait for each other in a circle.
    -- The read point stays: a replayed row is set aside.
    UPDATE {partition} SET "interventions" = "interventions" + 1, "read_point_interventions" = "read_point_interventions" + 1
    WHERE "partition" = 0 AND EXISTS (SELECT FROM changed)
)
SELECT "seq" FROM changed
