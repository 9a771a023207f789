-- ?1 event type, ?2 aggregate type, ?3 tenant, ?4 handler, ?5 key, ?6 created since, ?7 created before, ?8 text in the error, ?9 state,
-- ?10 event id, each NULL for any; the rows from ?12 on and below ?11, at most ?13.
SELECT seq, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, handler, status, attempts, last_error,
       created_at, CASE WHEN status = 2 OR status = 0 AND available_at > created_at THEN available_at END, done_at, locked_by
FROM {rows}
WHERE {of} AND seq < ?11 AND seq >= ?12 AND {attributes}
  AND (?6 IS NULL OR created_at >= ?6)
  AND (?7 IS NULL OR created_at < ?7)
  AND (?8 IS NULL OR instr(last_error, ?8) > 0)
  AND (?9 IS NULL OR status = ?9)
  AND (?10 IS NULL OR event_id = ?10)
ORDER BY seq DESC
LIMIT ?13
