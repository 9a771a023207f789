-- $1 node, $2 seq, $3 expected attempts, $4 attempts, $5 the error of a crashed one, $6 event id, $7 handler, $8 expected
-- replays, $9 the error as the row keeps it of a failed attempt. Fenced as settle_done.
WITH fence AS MATERIALIZED (
    SELECT FROM {node}
    WHERE "node_id" = $1::text{and_owns_the_table}
    FOR KEY SHARE
)
UPDATE {event}
SET "locked_by" = $1::text || '!', "attempts" = $4::int, "last_error" = coalesce($5::text, "last_error"),
    "failures" = CASE WHEN $5::text IS NULL THEN "failures" ELSE (
        SELECT {failed} FROM (SELECT $4::int, $9::text) AS v ("attempts", "failure")) END
WHERE "seq" = $2::bigint AND "status" IN (0, 2) AND greatest("attempts", 0) = $3::int AND "replays" = $8::int
  AND {fingerprint} = (SELECT {fingerprint} FROM (VALUES ($6::text, $7::text)) AS v ("event_id", "handler"))
  AND EXISTS (SELECT FROM fence){and_is_its_own}
RETURNING 1
