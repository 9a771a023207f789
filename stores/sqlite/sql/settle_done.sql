UPDATE {event}
SET status = 1, done_at = {now}, last_error = NULL, locked_by = NULL
WHERE seq IN (SELECT value FROM json_each(?2)) AND status IN (0, 2) AND attempts = ?3 AND {mine}
