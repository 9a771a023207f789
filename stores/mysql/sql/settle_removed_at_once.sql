-- As settle_done_at_once.sql, of rows that are not kept. Only a DELETE of several tables may name one in a subquery of every server.
DELETE e FROM {event} e FORCE INDEX (PRIMARY)
WHERE e.`seq` IN ({seqs}) AND e.`status` IN (0, 2) AND e.`attempts` <= 0 AND e.`replays` = 0{events}{held}
