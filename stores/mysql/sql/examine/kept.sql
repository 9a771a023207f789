-- The oldest rows only: those that a purge begins with.
SELECT TIMESTAMPDIFF(SECOND, MIN(`done_at`), UTC_TIMESTAMP(6))
FROM (SELECT `status`, `done_at` FROM {event} ORDER BY `seq` LIMIT 100) AS `e` WHERE `status` = 1
