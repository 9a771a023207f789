UPDATE {event} INDEXED BY {event_dead}
SET status = 0, attempts = 0, replays = min(replays, 4294967294) + 1, available_at = NULL, done_at = NULL, last_error = NULL,
    locked_by = NULL, delivered_as = NULL
WHERE seq IN (SELECT value FROM json_each(?1)) AND status = 3
RETURNING seq
