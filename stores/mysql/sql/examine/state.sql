SHOW GLOBAL STATUS WHERE `Variable_name` IN ('Threads_connected', 'Rpl_semi_sync_master_status', 'Rpl_semi_sync_source_status')
