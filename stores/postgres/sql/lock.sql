-- Every change of membership or ownership first takes this row, so that they happen one after the other and take their
-- other locks in the same order. The wait is bounded: the limit is set below the lock in the plan, so before it is waited for.
WITH patience AS MATERIALIZED (SELECT set_config('lock_timeout', '10s', true) AS "limit")
SELECT FROM {partition} AS p, patience WHERE p."partition" = 0 AND patience."limit" IS NOT NULL FOR UPDATE OF p
