SELECT "seq", "event_id", "event_type", "aggregate_type", "aggregate_id", "tenant_id", "ordering_key",
    {payload}, {payload_bytes}, "content_type", {headers}, "status", "attempts", "available_at",
    "occurred_at", "created_at", "done_at", "last_error", "locked_by",
    "handler", "replays", "failures"::text, "unique_key", "delivered_as"
FROM {event} AS e
WHERE "seq" = $1::bigint
