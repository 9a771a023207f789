-- As settle_done, of rows that keep positions: `?2` has `[seq, position]` of each.
UPDATE {event}
SET status = 1, done_at = {now}, last_error = NULL, locked_by = NULL, delivered_as = wanted.value ->> 1
FROM json_each(?2) AS wanted
WHERE seq = wanted.value ->> 0 AND status IN (0, 2) AND attempts = ?3 AND replays = ?6
    AND +event_id IN (SELECT value FROM json_each(?4)) AND handler IS ?5 AND {mine}
