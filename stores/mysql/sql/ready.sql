-- Rows that are due at once, read from the index in its order, from where the caller says.
SELECT {columns} FROM {event} FORCE INDEX (`pillarbox_queue`)
WHERE `queue` = 0 AND `due_at` IS NULL AND `seq` > {above}{wanted}
ORDER BY `seq` LIMIT {limit}{locking}
