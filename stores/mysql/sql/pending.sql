-- Each kind of pending rows by its part of the index. Rows that wait for a time are in the order of time, so all of them are looked at.
(SELECT `seq`, `event_id`, `event_type`, `aggregate_type`, `aggregate_id`, `tenant_id`, `ordering_key`, `handler`,
    IF(`status` = 2, 2, 0) AS `state`, `attempts`, `last_error`,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `created_at`) AS `created`, NULL AS `due`, `locked_by`
FROM {event} FORCE INDEX (`pillarbox_queue`)
WHERE `queue` = 0 AND `due_at` IS NULL AND `seq` > {above}{filter} ORDER BY `seq` LIMIT {limit})
UNION ALL
(SELECT `seq`, `event_id`, `event_type`, `aggregate_type`, `aggregate_id`, `tenant_id`, `ordering_key`, `handler`,
    IF(`status` = 2, 2, `due_at` > UTC_TIMESTAMP(6)), `attempts`, `last_error`,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `created_at`), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `due_at`), `locked_by`
FROM {event} FORCE INDEX (`pillarbox_queue`)
WHERE `queue` = 1 AND `seq` > {above}{filter} ORDER BY `seq` LIMIT {limit})
ORDER BY `seq` LIMIT {limit}
