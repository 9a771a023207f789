UPDATE {event} FORCE INDEX (PRIMARY) SET `available_at` = NULL
WHERE `seq` IN ({seqs}) AND `status` = 0 AND `available_at` <= UTC_TIMESTAMP(6)
