-- Rows with `?3` failed attempts and `?6` replays, by two arrays: `?2` of places, `?4` of event ids; and for one handler, `?5`. No two rows
-- are of the same event and handler, so as many rows of as many events are in their places. `+` keeps the index of event ids
-- out of the plan.
UPDATE {event}
SET status = 1, done_at = {now}, last_error = NULL, locked_by = NULL
WHERE seq IN (SELECT value FROM json_each(?2)) AND status IN (0, 2) AND attempts = ?3 AND replays = ?6
    AND +event_id IN (SELECT value FROM json_each(?4)) AND handler IS ?5 AND {mine}
