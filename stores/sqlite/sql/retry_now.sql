-- A due time, so that reading finds the row wherever it has got to.
UPDATE {event} SET available_at = {now}
WHERE seq IN (SELECT value FROM json_each(?1))
  AND (+status = 2 OR +status = 0 AND +available_at > created_at AND +available_at > {now})
RETURNING seq
