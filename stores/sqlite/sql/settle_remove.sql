DELETE FROM {event}
WHERE seq IN (SELECT value FROM json_each(?2)) AND status IN (0, 2) AND attempts = ?3 AND {mine}
