-- In the order of the primary key, as every settle locks them.
SELECT `seq` FROM {event} FORCE INDEX (PRIMARY) WHERE `seq` IN ({seqs}) AND `status` IN (0, 2) ORDER BY `seq` FOR UPDATE
