-- The columns of a listed event.
`seq`, `event_id`, `event_type`, `aggregate_type`, `aggregate_id`, `tenant_id`, `ordering_key`, `handler`, `status`, `attempts`,
    `last_error`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `created_at`) AS `created`,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', IF(`status` = 2 OR `status` = 0 AND `available_at` > `created_at`, `available_at`, NULL)) AS `due`,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `done_at`) AS `done`, `locked_by`
