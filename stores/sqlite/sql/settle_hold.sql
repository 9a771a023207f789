-- The row stays due, and held, as it was; if its due time meant no delay while it was NEW, it means none now.
UPDATE {event}
SET status = 2, attempts = ?4, last_error = ?5, failures = {failed},
    available_at = CASE WHEN available_at <= created_at THEN NULL ELSE available_at END
WHERE seq = ?2 AND status IN (0, 2) AND attempts = ?3 AND replays = ?8 AND +event_id = ?6 AND handler IS ?7 AND {mine}
