-- The row stays due, and held, as it was.
UPDATE {event}
SET status = 2, attempts = ?4, last_error = ?5
WHERE seq = ?2 AND status IN (0, 2) AND attempts = ?3 AND {mine}
