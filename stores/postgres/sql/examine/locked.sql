-- The sessions that hold a lock on one of the tables for which others wait.
SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS "sees_all", o.*
FROM (SELECT 1) AS one LEFT JOIN (
    SELECT 'pid ' || a."pid" AS "who", coalesce(a."usename", '') AS "user", coalesce(a."application_name", '') AS "application",
        coalesce(a."state", '') AS "state", extract(epoch FROM clock_timestamp() - min(a."xact_start"))::float8 AS "seconds",
        NULL::bigint AS "transactions", coalesce(a."query", '') AS "query", a."pid" AS "pid"
    FROM pg_locks w CROSS JOIN LATERAL unnest(pg_blocking_pids(w."pid")) AS b("pid") JOIN pg_stat_activity a ON a."pid" = b."pid"
    WHERE NOT w."granted" AND w."locktype" = 'relation'
      AND w."relation" IN (to_regclass('{event}'), to_regclass('{node}'), to_regclass('{partition}'))
      AND w."database" = (SELECT "oid" FROM pg_database WHERE "datname" = current_database())
      AND EXISTS (
        SELECT FROM pg_locks h
        WHERE h."pid" = b."pid" AND h."granted" AND h."locktype" = 'relation' AND h."relation" = w."relation"
          AND h."database" = w."database" AND h."mode" IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
    GROUP BY a."pid", a."usename", a."application_name", a."state", a."query"
    ORDER BY 5 DESC
    LIMIT 5
) AS o ON true
