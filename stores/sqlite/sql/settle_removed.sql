-- As settle_done, of rows that are not kept.
DELETE FROM {event}
WHERE seq IN (SELECT value FROM json_each(?2)) AND status IN (0, 2) AND attempts = ?3 AND replays = ?6
    AND +event_id IN (SELECT value FROM json_each(?4)) AND handler IS ?5 AND {mine}
