-- An attempt that was announced (`node!`) has ended too: its node lives, or it would not release the row.
UPDATE {event} SET locked_by = NULL
WHERE seq IN (SELECT value FROM json_each(?2)) AND status IN (0, 2) AND locked_by IN (?1, ?1 || '!')
    AND +event_id IN (SELECT value FROM json_each(?3))
