UPDATE {event} FORCE INDEX (PRIMARY)
SET `status` = 1, `done_at` = UTC_TIMESTAMP(6), `last_error` = NULL, `locked_by` = NULL, `room` = NULL{position}
WHERE `seq` IN ({seqs})
