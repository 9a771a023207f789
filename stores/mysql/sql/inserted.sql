-- What MySQL, which has no RETURNING, gave the rows of the insert before.
SELECT `seq` FROM {event} WHERE (`event_id`, `handler_id`) IN ({ids}) ORDER BY `seq`
