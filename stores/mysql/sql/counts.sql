-- A cancelled row is DONE, and counts by itself, as state 4.
SELECT IF(`status` = 1 AND `last_error` = {cancelled}, 4, `status`) AS `state`, COUNT(*) FROM {event} GROUP BY `state`
