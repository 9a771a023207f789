-- $1 ascending seqs, $2 event ids, $3 handlers, $4 partitions. By place in the array, as in settle_mixed.
WITH named AS MATERIALIZED (
    SELECT ARRAY(SELECT {fingerprint} FROM unnest($2::text[], $3::text[]) AS v ("event_id", "handler")) AS "events"
)
UPDATE {event} SET "partition" = ($4::smallint[])[width_bucket("seq", $1::bigint[])]
WHERE "seq" = ANY ($1::bigint[]) AND ("partition" IS NULL OR "partition" NOT BETWEEN 0 AND 255)
  AND {fingerprint} = (SELECT "events" FROM named)[width_bucket("seq", $1::bigint[])]
