-- A user without the privilege PROCESS is refused.
SELECT t.`trx_mysql_thread_id`, TIMESTAMPDIFF(SECOND, t.`trx_started`, NOW()), COALESCE(p.`USER`, ''), COALESCE(p.`COMMAND`, ''),
    COALESCE(t.`trx_query`, p.`INFO`, '')
FROM `information_schema`.`INNODB_TRX` t LEFT JOIN `information_schema`.`PROCESSLIST` p ON p.`ID` = t.`trx_mysql_thread_id`
WHERE t.`trx_mysql_thread_id` NOT IN (0, CONNECTION_ID()) AND t.`trx_started` <= NOW() - INTERVAL {seconds} SECOND
ORDER BY t.`trx_started` LIMIT 5
