-- Rows that are due at once, read from the index in its order, from where the caller says.
SELECT {columns} FROM {event} e FORCE INDEX (`pillarbox_queue`){heads}
WHERE e.`queue` = 0 AND e.`due_at` IS NULL AND e.`seq` > {above}{wanted}
ORDER BY e.`seq` LIMIT {limit}{locking}
