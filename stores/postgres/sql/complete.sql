-- As settle_mixed, of one row that is DONE, in the transaction of its handler: $1 node, $2 seq, $3 event id, $4 handler, $5 expected
-- attempts, $6 expected replays, and $7 the position if it keeps one. The locks of the fence and of the row last until the handler's transaction ends;
-- so a process that stands still before its commit keeps them for five seconds at most, and nobody from taking over.
WITH fence AS MATERIALIZED (
    SELECT set_config('idle_in_transaction_session_timeout', '5s', true) FROM {node}
    WHERE "node_id" = $1::text{and_owns_the_table}
    FOR KEY SHARE
)
UPDATE {event}
SET "status" = 1, "done_at" = clock_timestamp(), "last_error" = NULL, "locked_by" = NULL{and_position}
WHERE "seq" = $2::bigint AND "event_id" = $3::text AND "handler" IS NOT DISTINCT FROM $4::text
  AND "status" IN (0, 2) AND greatest("attempts", 0) = $5::bigint AND "replays" = $6::bigint
  AND EXISTS (SELECT FROM fence){and_is_its_own}
