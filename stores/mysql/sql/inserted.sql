-- The numbers of the rows of the insert before, since MySQL has no RETURNING.
SELECT `seq` FROM {event} WHERE (`event_id`, `handler_id`) IN ({ids}) ORDER BY `seq`
