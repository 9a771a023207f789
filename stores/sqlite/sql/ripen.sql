UPDATE {event} SET available_at = NULL
WHERE seq IN (SELECT value FROM json_each(?1)) AND status = 0 AND available_at <= {now}
