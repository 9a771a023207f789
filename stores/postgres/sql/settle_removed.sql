-- As settle_done, of rows that are not kept.
WITH fence AS MATERIALIZED (
    SELECT CASE WHEN $2::bool THEN '' ELSE set_config('synchronous_commit', 'off', true) END
    FROM {node}
    WHERE "node_id" = $1::text{and_owns_the_table}
    FOR KEY SHARE
), removed AS (
    DELETE FROM {event}
    WHERE {is_among_them} AND "status" IN (0, 2) AND "attempts" <= 0 AND "replays" = 0
      AND {event_is_named}
      AND EXISTS (SELECT FROM fence){and_is_its_own}
    RETURNING "seq"
)
SELECT ARRAY(SELECT "seq" FROM removed)
