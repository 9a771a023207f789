-- A due time, so that reading finds the row wherever it has got to. One that has failed and is due gets no later one: should the clock be set back
-- now, it would wait for a time again, and be overtaken where all events are delivered in order. A row that is held in its place gets another with each attempt.
UPDATE {event} SET available_at = CASE
    WHEN status = 2 AND available_at IS NULL THEN created_at + attempts
    WHEN status = 2 THEN min(available_at, {now})
    ELSE {now} END
WHERE seq IN (SELECT value FROM json_each(?1))
  AND (+status = 2 OR +status = 0 AND +available_at > created_at AND +available_at > {now})
RETURNING seq
