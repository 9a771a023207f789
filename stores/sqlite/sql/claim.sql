UPDATE {event} SET locked_by = CASE WHEN locked_by IN ('!', ?1 || '!') THEN ?1 || '!' ELSE ?1 END
WHERE seq IN (SELECT value FROM json_each(?2))
