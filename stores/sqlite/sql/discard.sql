DELETE FROM {event} INDEXED BY {event_dead}
WHERE seq IN (SELECT value FROM json_each(?1)) AND status = 3
RETURNING seq
