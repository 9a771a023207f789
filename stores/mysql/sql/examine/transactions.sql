-- A user without the privilege PROCESS is refused. `trx_started` is in the time zone of the server's machine, not in that of the session.
SELECT t.`trx_mysql_thread_id`, TIMESTAMPDIFF(SECOND, CONVERT_TZ(t.`trx_started`, 'SYSTEM', '+00:00'), UTC_TIMESTAMP()),
    COALESCE(p.`USER`, ''), COALESCE(p.`COMMAND`, ''), COALESCE(t.`trx_query`, p.`INFO`, '')
FROM `information_schema`.`INNODB_TRX` t LEFT JOIN `information_schema`.`PROCESSLIST` p ON p.`ID` = t.`trx_mysql_thread_id`
WHERE t.`trx_mysql_thread_id` NOT IN (0, CONNECTION_ID())
    AND CONVERT_TZ(t.`trx_started`, 'SYSTEM', '+00:00') <= UTC_TIMESTAMP() - INTERVAL {seconds} SECOND
ORDER BY t.`trx_started` LIMIT 5
