-- As recent_end.sql, of the pending rows.
(SELECT `seq`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `created_at`) AS `created` FROM {event} FORCE INDEX (`pillarbox_queue`)
WHERE `queue` = 0 AND `due_at` IS NULL AND `seq` < {below} ORDER BY `seq` DESC LIMIT {most})
UNION ALL
(SELECT `seq`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `created_at`) FROM {event} FORCE INDEX (`pillarbox_queue`)
WHERE `queue` = 1 AND `seq` < {below} ORDER BY `seq` DESC LIMIT {most})
ORDER BY `seq` DESC LIMIT {but_one}, 1
