SELECT `seq` FROM {event} FORCE INDEX (PRIMARY) WHERE `seq` IN ({seqs}) AND `status` = 3 ORDER BY `seq` FOR UPDATE
