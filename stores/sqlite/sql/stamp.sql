-- `?1` is an array of `[seq, partition]`.
UPDATE {event} SET partition = stamp.partition
FROM (SELECT value ->> 0 AS seq, value ->> 1 AS partition FROM json_each(?1)) AS stamp
WHERE {event}.seq = stamp.seq AND ({event}.partition IS NULL OR {event}.partition NOT BETWEEN 0 AND 255)
