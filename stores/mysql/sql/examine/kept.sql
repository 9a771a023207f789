-- The oldest rows only: those that a purge begins with, but for rows that a clock has stamped ahead.
SELECT TIMESTAMPDIFF(SECOND, MIN(`done_at`), UTC_TIMESTAMP(6))
FROM (SELECT `status`, `done_at` FROM {event} WHERE `created_at` <= TIMESTAMPADD(HOUR, 1, UTC_TIMESTAMP(6)) ORDER BY `seq` LIMIT 100) AS `e` WHERE `status` = 1
