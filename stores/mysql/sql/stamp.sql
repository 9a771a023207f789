-- Each row gets a partition of its own, so they come as a table: a pair of numbers each.
UPDATE JSON_TABLE('[{pairs}]', '$[*]' COLUMNS (`seq` BIGINT PATH '$[0]', `partition` SMALLINT PATH '$[1]')) s
STRAIGHT_JOIN {event} e FORCE INDEX (PRIMARY) ON e.`seq` = s.`seq`
SET e.`partition` = s.`partition` WHERE e.`partition` IS NULL OR e.`partition` NOT BETWEEN 0 AND 255
