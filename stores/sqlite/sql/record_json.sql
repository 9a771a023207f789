SELECT json_object(
    'seq', seq, 'event_id', event_id, 'event_type', event_type, 'aggregate_type', aggregate_type,
    'aggregate_id', aggregate_id, 'tenant_id', tenant_id, 'ordering_key', ordering_key, 'handler', handler,
    'payload', CAST(payload AS TEXT), 'payload_bytes', iif(payload_bytes IS NULL, NULL, hex(payload_bytes)), 'content_type', content_type,
    'headers', headers, 'status', status, 'attempts', attempts, 'replays', replays, 'available_at', available_at,
    'occurred_at', occurred_at, 'created_at', created_at, 'done_at', done_at, 'last_error', last_error,
    'locked_by', locked_by, 'failures', CAST(failures AS TEXT), 'unique_key', unique_key,
    'delivered_as', delivered_as
)
FROM {event}
WHERE seq IN (SELECT value FROM json_each(?1))
ORDER BY seq
