-- A due time, so that reading finds the row wherever it has got to.
UPDATE {event} FORCE INDEX (PRIMARY) SET `available_at` = UTC_TIMESTAMP(6), `room` = NULL WHERE `seq` IN ({seqs})
