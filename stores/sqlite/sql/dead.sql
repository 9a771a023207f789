SELECT seq, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, attempts, last_error,
       created_at, done_at, handler
FROM {event} INDEXED BY {event_dead}
WHERE status = 3 AND seq > ?9 AND {matching}
ORDER BY seq
LIMIT ?10
