UPDATE {event} FORCE INDEX (PRIMARY) SET `locked_by` = IF(`locked_by` LIKE '%!', '!', '?')
WHERE `seq` IN ({seqs}) AND `status` IN (0, 2)
