-- As complete, of a row that is not kept.
DELETE FROM {event}
WHERE seq = ?2 AND +event_id = ?3 AND handler IS ?4 AND status IN (0, 2) AND attempts = ?5 AND replays = ?6 AND {mine}
