-- The row stays held as it was, and due in the place of its number.
UPDATE {event}
SET status = 2, attempts = ?4, last_error = ?5, failures = {failed}, available_at = NULL
WHERE seq = ?2 AND status IN (0, 2) AND attempts = ?3 AND replays = ?8 AND +event_id = ?6 AND handler IS ?7 AND {mine}
