-- Rows whose time has come, read from the index in its order.
SELECT {columns} FROM {event} e FORCE INDEX (`pillarbox_queue`){heads}
WHERE e.`queue` = 1 AND e.`due_at` <= UTC_TIMESTAMP(6){wanted}
ORDER BY e.`due_at`, e.`seq` LIMIT {limit}{locking}
