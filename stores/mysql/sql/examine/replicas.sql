-- The first is refused to users that may not see the others' connections, and would count none.
SELECT (SELECT COUNT(*) FROM `information_schema`.`INNODB_TRX` WHERE FALSE)
    + (SELECT COUNT(*) FROM `information_schema`.`PROCESSLIST` WHERE `COMMAND` LIKE 'Binlog Dump%')
