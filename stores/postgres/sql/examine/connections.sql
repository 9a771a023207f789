-- Of the server, of the database and of the user: the connections, and their limit.
SELECT 'of the server' AS "whose", (SELECT sum("numbackends") FROM pg_stat_database)::bigint AS "used",
    (current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint) AS "limit"
UNION ALL
SELECT 'of the database', (SELECT count(*) FROM pg_stat_activity a WHERE a."datid" = d."oid"), d."datconnlimit"::bigint
FROM pg_database d WHERE d."datname" = current_database() AND d."datconnlimit" > 0
UNION ALL
SELECT 'of the user', (SELECT count(*) FROM pg_stat_activity a WHERE a."usesysid" = r."oid"), r."rolconnlimit"::bigint
FROM pg_roles r WHERE r."rolname" = current_user AND r."rolconnlimit" > 0
