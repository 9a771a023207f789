-- Rows whose time has come, read from the index in its order.
SELECT {columns} FROM {event} FORCE INDEX (`pillarbox_queue`)
WHERE `queue` = 1 AND `due_at` <= UTC_TIMESTAMP(6){wanted}
ORDER BY `due_at`, `seq` LIMIT {limit}{locking}
