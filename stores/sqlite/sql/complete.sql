-- One row that is DONE, in the transaction of its handler: ?1 node, ?2 seq, ?3 event id, ?4 handler, ?5 expected attempts, ?6 expected
-- replays, ?7 the position if it keeps one. That transaction holds the write lock from here on at the latest, so that ownership cannot change before it commits.
UPDATE {event}
SET status = 1, done_at = {now}, last_error = NULL, locked_by = NULL{and_position}
WHERE seq = ?2 AND +event_id = ?3 AND handler IS ?4 AND status IN (0, 2) AND attempts = ?5 AND replays = ?6 AND {mine}
