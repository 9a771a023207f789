-- `?1` is an array of `[seq, partition, event_id]`. An id that is no text was read as an empty one.
UPDATE {event} SET partition = assigned.partition
FROM (SELECT value ->> 0 AS seq, value ->> 1 AS partition, value ->> 2 AS event_id FROM json_each(?1)) AS assigned
WHERE {event}.seq = assigned.seq AND (+{event}.event_id = assigned.event_id OR assigned.event_id = '')
    AND ({event}.partition IS NULL OR {event}.partition NOT BETWEEN 0 AND 255)
