-- The events `?1`, an array of ids. The error of a row that is pending is not asked for, since it may be long and is not the last.
SELECT event_id, handler, status, CASE WHEN status IN (1, 3) THEN last_error END, delivered_as
FROM {event}
WHERE event_id IN (SELECT value FROM json_each(?1))
