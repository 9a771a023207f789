-- Makes rows due that wait for a time: $1 seqs. Rows that somebody is changing at this moment are passed over and said to be, marked by false; each is then tried by itself.
-- A wait for a row while another is held could close a circle with a settle, which has an order of its own.
WITH free AS MATERIALIZED (
    SELECT "seq" FROM {event} WHERE "seq" = ANY ($1::bigint[]) AND ("status" = 2 OR "status" = 0 AND "available_at" > "created_at" AND "available_at" > now()) ORDER BY "seq" FOR UPDATE{skip_locked}
), changed AS (
    -- A due time, so that reading finds the row wherever it has got to. At the creation it would be none. One that has failed and is due gets no later
    -- one: should the clock be set back now, it would wait for a time again, and be overtaken where all events are delivered in order. A row that is held in its
    -- place gets another with each attempt.
    UPDATE {event} SET "available_at" = CASE
        WHEN "status" = 2 AND "available_at" IS NULL THEN "created_at" + greatest("attempts", 0) * interval '1 microsecond'
        WHEN "status" = 2 THEN least("available_at", now())
        WHEN "created_at" = now() THEN now() - interval '1 microsecond'
        ELSE now() END
    WHERE "seq" = ANY (ARRAY(SELECT "seq" FROM free))
    RETURNING "seq"
), intervention AS (
    -- One row counts for the whole table, so that two operators never wait for each other in a circle.
    -- The read point stays: rows that wait for a time are set aside.
    UPDATE {partition} SET "interventions" = "interventions" + 1, "read_point_interventions" = "read_point_interventions" + 1
    WHERE "partition" = 0 AND EXISTS (SELECT FROM changed)
)
SELECT "seq", true FROM changed
UNION ALL
SELECT "seq", false FROM {event} WHERE "seq" = ANY ($1::bigint[]) AND ("status" = 2 OR "status" = 0 AND "available_at" > "created_at" AND "available_at" > now()) AND "seq" NOT IN (SELECT "seq" FROM free)
