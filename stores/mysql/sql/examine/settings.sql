SHOW GLOBAL VARIABLES WHERE `Variable_name` IN ('innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'sync_binlog', 'log_bin', 'binlog_format', 'read_only', 'max_connections')
