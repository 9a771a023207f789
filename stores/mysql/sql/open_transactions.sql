-- The oldest transactions of the server. Which of them holds a table, it tells only where that is instrumented.
SELECT `trx_mysql_thread_id`, TIMESTAMPDIFF(SECOND, `trx_started`, NOW()) FROM `information_schema`.`INNODB_TRX`
WHERE `trx_mysql_thread_id` <> CONNECTION_ID() AND `trx_mysql_thread_id` <> 0
ORDER BY `trx_started` LIMIT 3
