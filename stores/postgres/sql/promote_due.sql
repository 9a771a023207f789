-- $1 ascending seqs, $2 event ids, $3 handlers. The time is asked for in a way that does not lead the planner to the index of
-- all that is due.
WITH named AS MATERIALIZED (
    SELECT ARRAY(SELECT {fingerprint} FROM unnest($2::text[], $3::text[]) AS v ("event_id", "handler")) AS "events"
)
-- A NEW row stays one that was delayed, by a time before its creation: the read point may have passed it. A program that writes by SQL can set
-- the creation to the beginning of time, before which there is none.
UPDATE {event} SET
    "created_at" = CASE WHEN "status" = 0 AND "created_at" = '-infinity' THEN timestamptz '0001-01-01 00:00:00+00' ELSE "created_at" END,
    "available_at" = CASE WHEN "status" = 0 AND "created_at" >= '0001-01-01 00:00:00+00' THEN "created_at" - interval '1 microsecond'
        WHEN "status" = 0 THEN '-infinity' END
WHERE "seq" = ANY ($1::bigint[]) AND "status" IN (0, 2)
  AND coalesce("available_at", 'infinity') <= now()
  AND {fingerprint} = (SELECT "events" FROM named)[width_bucket("seq", $1::bigint[])]
