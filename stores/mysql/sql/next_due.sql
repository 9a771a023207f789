-- How long until the next row is due. Asked before due.sql, so that a row whose time comes in between is not missed.
SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), `due_at`) FROM {event} FORCE INDEX (`pillarbox_queue`)
WHERE `queue` = 1 AND `due_at` > UTC_TIMESTAMP(6){wanted}
ORDER BY `due_at`, `seq` LIMIT 1
