SELECT `seq`, `event_id`, `event_type`, `aggregate_type`, `aggregate_id`, `tenant_id`, `ordering_key`,
    {payload}, {payload_bytes}, `content_type`, {headers}, `status`, `attempts`,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `available_at`), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `occurred_at`),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `created_at`), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `done_at`),
    `last_error`, `locked_by`, `handler`, `replays`, `failures`,
    CONVERT(`unique_key` USING utf8mb4), `delivered_as`
-- By the index, which takes ids for the same that differ in trailing spaces.
FROM {event} AS e WHERE `event_id` = {event_id} AND CAST(`event_id` AS BINARY) = CAST({event_id} AS BINARY)
