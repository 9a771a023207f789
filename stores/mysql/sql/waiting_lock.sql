-- Rows that wait for a time: RETRY rows, and NEW ones that are delayed. In the order of the primary key, as every settle locks them.
SELECT `seq` FROM {event} FORCE INDEX (PRIMARY)
WHERE `seq` IN ({seqs}) AND (`status` = 2 OR `status` = 0 AND `due_at` > UTC_TIMESTAMP(6)) ORDER BY `seq` FOR UPDATE
