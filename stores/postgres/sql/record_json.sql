SELECT json_build_object(
    'seq', "seq", 'event_id', "event_id", 'event_type', "event_type", 'aggregate_type', "aggregate_type",
    'aggregate_id', "aggregate_id", 'tenant_id', "tenant_id", 'ordering_key', "ordering_key", 'handler', "handler",
    'payload', "payload"::text, 'payload_bytes', encode("payload_bytes", 'hex'), 'content_type', "content_type",
    'headers', "headers"::text, 'status', "status", 'attempts', "attempts", 'replays', "replays",
    'available_at', (extract(epoch FROM "available_at") * 1000000)::bigint,
    'occurred_at', (extract(epoch FROM "occurred_at") * 1000000)::bigint,
    'created_at', (extract(epoch FROM "created_at") * 1000000)::bigint,
    'done_at', (extract(epoch FROM "done_at") * 1000000)::bigint,
    'last_error', "last_error", 'locked_by', "locked_by",
    'failures', "failures"::text, 'unique_key', "unique_key", 'delivered_as', "delivered_as"
)::text
FROM {event}
WHERE "seq" = ANY ($1::bigint[])
ORDER BY "seq"
