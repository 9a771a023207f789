-- $1 a statement. The sessions for which those wait that run it, the oldest transaction first. A transaction that was prepared has none.
SELECT b.pid, coalesce(nullif(a.application_name, '') || ', ', ''), CASE WHEN b.pid = 0 THEN 'prepared' ELSE coalesce(a.state, 'unknown') END,
    coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), 0)::bigint, coalesce(a.query, '')
FROM (SELECT DISTINCT unnest(pg_blocking_pids(w.pid)) AS pid FROM pg_stat_activity w
    WHERE w.datname = current_database() AND w.state = 'active' AND w.query = $1::text) AS b
LEFT JOIN pg_stat_activity a ON a.pid = b.pid
ORDER BY a.xact_start NULLS LAST
LIMIT 3
