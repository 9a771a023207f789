SELECT COUNT(*) FROM {event} e FORCE INDEX (`pillarbox_queue`)
WHERE (e.`queue` = 0 OR e.`queue` = 1 AND e.`due_at` <= UTC_TIMESTAMP(6)) AND (e.`event_type` IN ({types}) OR e.`handler` IN ({handlers}))
