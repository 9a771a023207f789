UPDATE {event} FORCE INDEX (PRIMARY) SET `locked_by` = NULL
WHERE `seq` IN ({seqs}) AND `status` IN (0, 2) AND `locked_by` IN ({id}, {begun}) AND `event_id` IN ({events})
