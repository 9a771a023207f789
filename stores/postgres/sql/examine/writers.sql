-- The open transactions that have written to the table, or are about to.
SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS "sees_all", o.*
FROM (SELECT 1) AS one LEFT JOIN (
    SELECT 'pid ' || a."pid" AS "who", coalesce(a."usename", '') AS "user", coalesce(a."application_name", '') AS "application",
        coalesce(a."state", '') AS "state", extract(epoch FROM clock_timestamp() - a."xact_start")::float8 AS "seconds",
        NULL::bigint AS "transactions", coalesce(a."query", '') AS "query", a."pid" AS "pid"
    FROM pg_locks l JOIN pg_stat_activity a ON a."pid" = l."pid"
    WHERE l."granted" AND l."locktype" = 'relation' AND l."relation" = to_regclass('{event}') AND l."mode" = 'RowExclusiveLock'
      AND l."database" = (SELECT "oid" FROM pg_database WHERE "datname" = current_database())
      AND a."xact_start" < clock_timestamp() - interval '{seconds} seconds'
    ORDER BY 5 DESC
    LIMIT 5
) AS o ON true
