-- $1 node, $2 ascending seqs, $3 event ids, $4 handlers.
WITH named AS MATERIALIZED (
    SELECT ARRAY(SELECT {fingerprint} FROM unnest($3::text[], $4::text[]) AS v ("event_id", "handler")) AS "events"
)
UPDATE {event} SET "locked_by" = NULL
WHERE "seq" = ANY ((SELECT $2::bigint[])::bigint[]) AND "status" IN (0, 2) AND "locked_by" IN ($1::text, $1::text || '!')
  AND {fingerprint} = (SELECT "events" FROM named)[width_bucket("seq", $2::bigint[])]
