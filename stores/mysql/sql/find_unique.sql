-- The row that has the key, in any state; read without a lock.
SELECT COALESCE((
    SELECT IF(`status` IN (0, 2), -`seq`, `seq`) FROM {event} FORCE INDEX (`pillarbox_unique_key`)
    WHERE `unique_key` = CAST(CONVERT(? USING utf8mb4) AS BINARY) AND `handler_id` = ?), 0)
