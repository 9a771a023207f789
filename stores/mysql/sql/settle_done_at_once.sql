-- As settle_done.sql, of rows that were not locked before: the number that it matched tells if all were pending, had never failed
-- or been replayed, and are of these events. No two rows are of the same event and handler, so as many rows of as many events are in their
-- places.
UPDATE {event} e FORCE INDEX (PRIMARY)
SET e.`status` = 1, e.`done_at` = UTC_TIMESTAMP(6), e.`last_error` = NULL, e.`locked_by` = NULL, e.`room` = NULL{position}
WHERE e.`seq` IN ({seqs}) AND e.`status` IN (0, 2) AND e.`attempts` <= 0 AND e.`replays` = 0{events}{held}
