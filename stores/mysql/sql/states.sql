-- The index takes ids for the same that differ in trailing spaces; the reader of the answer leaves the others out. The error of a row
-- that is pending is not asked for, since it may be long and is not the last.
SELECT `event_id`, `handler`, `status`, CASE WHEN `status` IN (1, 3) THEN `last_error` END, `delivered_as`
FROM {event} FORCE INDEX (`pillarbox_event_id`) WHERE `event_id` IN ({event_ids})
