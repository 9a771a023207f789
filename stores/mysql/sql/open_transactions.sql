-- The oldest transactions of the server, of which there may be many. Which of them holds a table, it tells only where that is
-- instrumented, and it need not be among the very oldest. `trx_started` is in the time zone of the server's machine.
SELECT `trx_mysql_thread_id`, TIMESTAMPDIFF(SECOND, CONVERT_TZ(`trx_started`, 'SYSTEM', '+00:00'), UTC_TIMESTAMP())
FROM `information_schema`.`INNODB_TRX`
WHERE `trx_mysql_thread_id` <> CONNECTION_ID() AND `trx_mysql_thread_id` <> 0
ORDER BY `trx_started` LIMIT 20
