UPDATE {event}
SET status = 2, attempts = ?4, available_at = {now} + ?5, last_error = coalesce(?6, last_error), locked_by = NULL,
    failures = CASE WHEN ?11 IS NULL THEN failures ELSE {failed} END
WHERE seq = ?2 AND status IN (0, 2) AND attempts = ?3 AND replays = ?9 AND +event_id = ?7 AND handler IS ?8 AND {mine}
