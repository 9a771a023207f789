-- As recent.sql, of the pending rows: each kind by its part of the index. Rows that wait for a time are in the order of time, so all of
-- them are looked at.
(SELECT {listed} FROM {event} FORCE INDEX (`pillarbox_queue`)
WHERE `queue` = 0 AND `due_at` IS NULL AND `seq` < {below} AND `seq` >= {from}{filter} ORDER BY `seq` DESC LIMIT {limit})
UNION ALL
(SELECT {listed} FROM {event} FORCE INDEX (`pillarbox_queue`)
WHERE `queue` = 1 AND `seq` < {below} AND `seq` >= {from}{filter} ORDER BY `seq` DESC LIMIT {limit})
ORDER BY `seq` DESC LIMIT {limit}
