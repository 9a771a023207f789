-- The names of a row as they are stored, be they text or not.
SELECT CAST(event_id AS BLOB), CAST(handler AS BLOB) FROM {event} WHERE seq = ?1
