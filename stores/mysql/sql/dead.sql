SELECT `seq`, `event_id`, `event_type`, `aggregate_type`, `aggregate_id`, `tenant_id`, `ordering_key`, `attempts`,
    `last_error`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `created_at`), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `done_at`),
    `handler`
FROM {event} FORCE INDEX (`pillarbox_queue`)
WHERE `queue` = 3 AND `due_at` IS NULL AND `seq` > {above}{filter} ORDER BY `seq` LIMIT {limit}
