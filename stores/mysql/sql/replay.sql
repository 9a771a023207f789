UPDATE {event} FORCE INDEX (PRIMARY) SET `status` = 0, `attempts` = 0, `replays` = LEAST(`replays`, 2147483646) + 1, `available_at` = NULL,
    `done_at` = NULL, `last_error` = NULL, `locked_by` = NULL, `delivered_as` = NULL
WHERE `seq` IN ({seqs})
