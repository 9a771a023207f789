-- The rows of a settle that may still be changed, locked, in the order of the primary key as in every other settle.
SELECT e.`seq`, GREATEST(e.`attempts`, 0), e.`event_id`, e.`handler`, e.`replays` FROM {event} e FORCE INDEX (PRIMARY)
WHERE e.`seq` IN ({seqs}) AND e.`status` IN (0, 2){held} ORDER BY e.`seq` FOR UPDATE
