UPDATE {event} SET event_id = ?2, handler = ?3 WHERE seq = ?1 AND status IN (0, 2)
