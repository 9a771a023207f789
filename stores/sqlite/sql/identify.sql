SELECT seq, event_id, handler FROM {event} WHERE seq IN (SELECT value FROM json_each(?1))
