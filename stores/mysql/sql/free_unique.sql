-- A row that has ended gives up its key.
UPDATE {event} FORCE INDEX (PRIMARY) SET `unique_key` = NULL
WHERE `seq` = ? AND `unique_key` = CAST(CONVERT(? USING utf8mb4) AS BINARY) AND `status` NOT IN (0, 2)
