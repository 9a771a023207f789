-- $1 tables. The other sessions that hold locks on them, those with the oldest transactions.
SELECT a.pid, coalesce(nullif(a.application_name, '') || ', ', ''), coalesce(a.state, 'unknown'),
    coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), 0)::bigint, coalesce(a.query, '')
FROM pg_stat_activity a
WHERE a.pid <> pg_backend_pid() AND a.pid IN (
    SELECT l.pid FROM pg_locks l
    WHERE l.granted AND l.locktype = 'relation' AND l.relation IN (SELECT to_regclass(name) FROM unnest($1::text[]) AS name)
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
ORDER BY a.xact_start NULLS LAST
LIMIT 3
