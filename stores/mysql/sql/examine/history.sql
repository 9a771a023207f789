SELECT `COUNT` FROM `information_schema`.`INNODB_METRICS` WHERE `NAME` = 'trx_rseg_history_len'
