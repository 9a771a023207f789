-- The time until the next row is due. Asked before fetch_due.sql, so that a row whose time comes in between is not missed.
SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), e.`due_at`) FROM {event} e FORCE INDEX (`pillarbox_queue`)
WHERE e.`queue` = 1 AND e.`due_at` > UTC_TIMESTAMP(6){wanted}
ORDER BY e.`due_at`, e.`seq` LIMIT 1
