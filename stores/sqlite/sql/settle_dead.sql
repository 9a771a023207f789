UPDATE {event}
SET status = 3, attempts = ?3, done_at = {now}, last_error = ?4, locked_by = NULL
WHERE seq = ?1 AND status IN (0, 2) AND attempts = ?2
