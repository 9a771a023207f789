UPDATE {event}
SET status = 2, attempts = ?3, available_at = {now} + ?4, last_error = coalesce(?5, last_error), locked_by = NULL
WHERE seq = ?1 AND status IN (0, 2) AND attempts = ?2
