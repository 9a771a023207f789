`seq`, `event_id`, `event_type`, `aggregate_type`, `aggregate_id`, `tenant_id`, `ordering_key`,
    `payload`, `payload_bytes`, `content_type`, `headers`, `attempts`, `available_at` IS NOT NULL,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `occurred_at`), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `created_at`), `locked_by`
