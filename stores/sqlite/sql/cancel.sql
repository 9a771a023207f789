UPDATE {event} SET status = 1, done_at = {now}, last_error = {cancelled}, locked_by = NULL
WHERE seq IN (SELECT value FROM json_each(?1)) AND +status IN (0, 2)
RETURNING seq
