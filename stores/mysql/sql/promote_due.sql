UPDATE {event} FORCE INDEX (PRIMARY) SET `available_at` = NULL
WHERE `seq` IN ({seqs}) AND `status` IN (0, 2) AND `available_at` <= UTC_TIMESTAMP(6)
    AND `event_id` IN ({events})
