UPDATE {event}
SET locked_by = ?2 || '!', attempts = ?5, last_error = coalesce(?6, last_error),
    failures = CASE WHEN ?6 IS NULL THEN failures ELSE {failed} END
WHERE seq = ?3 AND status IN (0, 2) AND attempts = ?4 AND replays = ?9 AND +event_id = ?7 AND handler IS ?8 AND {mine}
