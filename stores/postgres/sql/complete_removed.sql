-- As complete, of a row that is not kept.
WITH fence AS MATERIALIZED (
    SELECT set_config('idle_in_transaction_session_timeout', '5s', true) FROM {node}
    WHERE "node_id" = $1::text{and_owns_the_table}
    FOR KEY SHARE
)
DELETE FROM {event}
WHERE "seq" = $2::bigint AND "event_id" = $3::text AND "handler" IS NOT DISTINCT FROM $4::text
  AND "status" IN (0, 2) AND greatest("attempts", 0) = $5::bigint AND "replays" = $6::bigint
  AND EXISTS (SELECT FROM fence){and_is_its_own}
