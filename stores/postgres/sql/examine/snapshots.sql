-- The sessions, prepared transactions, standbys and slots that keep vacuum from removing rows of this database. The age is in seconds, or
-- for those that have no time, in transactions.
SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS "sees_all", o.*
FROM (SELECT 1) AS one LEFT JOIN (
    SELECT 'pid ' || a."pid" AS "who", coalesce(a."usename", '') AS "user", coalesce(a."application_name", '') AS "application",
        coalesce(a."state", '') AS "state", extract(epoch FROM clock_timestamp() - a."xact_start")::float8 AS "seconds",
        NULL::bigint AS "transactions", coalesce(a."query", '') AS "query", a."pid" AS "pid"
    FROM pg_stat_activity a
    WHERE a."pid" <> pg_backend_pid() AND a."datname" = current_database() AND a."backend_type" <> 'autovacuum worker'
      AND (a."backend_xmin" IS NOT NULL OR a."backend_xid" IS NOT NULL)
      AND a."xact_start" < clock_timestamp() - interval '{seconds} seconds'
    UNION ALL
    SELECT 'prepared transaction ' || quote_literal(p."gid"), p."owner", '', 'prepared',
        extract(epoch FROM clock_timestamp() - p."prepared")::float8, NULL, '', NULL
    FROM pg_prepared_xacts p
    WHERE p."database" = current_database() AND p."prepared" < clock_timestamp() - interval '{seconds} seconds'
    UNION ALL
    SELECT 'replication slot ' || quote_literal(s."slot_name"), '', '', CASE WHEN s."active" THEN 'active' ELSE 'unused' END, NULL,
        age(s."xmin"), '', s."active_pid"
    FROM pg_replication_slots s
    WHERE age(s."xmin") > 1000000
    UNION ALL
    SELECT 'standby ' || r."pid", coalesce(r."usename", ''), coalesce(r."application_name", ''), coalesce(r."state", ''), NULL,
        age(r."backend_xmin"), '', r."pid"
    FROM pg_stat_replication r
    WHERE age(r."backend_xmin") > 1000000
    ORDER BY 5 DESC NULLS LAST, 6 DESC
    LIMIT 5
) AS o ON true
