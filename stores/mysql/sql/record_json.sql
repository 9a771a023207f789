SELECT CAST(JSON_OBJECT(
    'seq', `seq`, 'event_id', `event_id`, 'event_type', `event_type`, 'aggregate_type', `aggregate_type`,
    'aggregate_id', `aggregate_id`, 'tenant_id', `tenant_id`, 'ordering_key', `ordering_key`, 'handler', `handler`,
    'payload', `payload`, 'payload_bytes', HEX(`payload_bytes`), 'content_type', `content_type`,
    'headers', `headers`, 'status', `status`, 'attempts', `attempts`, 'replays', `replays`,
    'available_at', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `available_at`),
    'occurred_at', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `occurred_at`),
    'created_at', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `created_at`),
    'done_at', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `done_at`),
    'last_error', `last_error`, 'locked_by', `locked_by`,
    'failures', CAST(`failures` AS CHAR CHARACTER SET utf8mb4), 'unique_key', CONVERT(`unique_key` USING utf8mb4),
    'delivered_as', `delivered_as`
) AS CHAR CHARACTER SET utf8mb4)
FROM {event} FORCE INDEX (PRIMARY)
WHERE `seq` IN ({seqs})
ORDER BY `seq`
