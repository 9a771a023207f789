SELECT COUNT(*) FROM {event} e FORCE INDEX (`pillarbox_queue`)
WHERE (e.`queue` = 0 OR e.`queue` = 1 AND e.`due_at` <= UTC_TIMESTAMP(6)) AND (CAST(e.`event_type` AS BINARY) IN ({types}) OR CAST(e.`handler` AS BINARY) IN ({handlers}))
