-- Each row gets a partition of its own, so they come as a table: place, partition and event id in hexadecimal.
UPDATE JSON_TABLE('[{partitions}]', '$[*]' COLUMNS (
    `seq` BIGINT PATH '$[0]', `partition` SMALLINT PATH '$[1]', `event` VARCHAR(512) PATH '$[2]'
)) s
STRAIGHT_JOIN {event} e FORCE INDEX (PRIMARY) ON e.`seq` = s.`seq`
SET e.`partition` = s.`partition`
WHERE (e.`partition` IS NULL OR e.`partition` NOT BETWEEN 0 AND 255) AND CAST(e.`event_id` AS BINARY) = UNHEX(s.`event`)
