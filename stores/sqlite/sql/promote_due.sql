-- The plus keeps the planner from the index of all that is due.
UPDATE {event} SET available_at = NULL
WHERE seq IN (SELECT value FROM json_each(?1)) AND status IN (0, 2) AND +available_at <= {now}
    AND +event_id IN (SELECT value FROM json_each(?2))
