INSERT INTO {event} (
    `event_id`, `event_type`, `aggregate_type`, `aggregate_id`, `tenant_id`, `ordering_key`, `partition`,
    `payload`, `payload_bytes`, `content_type`, `headers`, `available_at`, `occurred_at`, `locked_by`, `handler`)
VALUES
