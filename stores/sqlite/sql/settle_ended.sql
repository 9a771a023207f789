UPDATE {event}
SET status = ?6, attempts = ?4, done_at = {now}, last_error = ?5, locked_by = NULL, failures = {failed}
WHERE seq = ?2 AND status IN (0, 2) AND attempts = ?3 AND replays = ?9 AND +event_id = ?7 AND handler IS ?8 AND {mine}
