-- The heads of keys in the order of the table, with the number of pending rows of their key and handler that come after.
-- The rows of each key that has a head are counted from the last one on, so that all are read once, however many heads a
-- key has. Nothing below the lowest head matters.
SELECT e.`seq`, e.`event_id`, e.`event_type`, COALESCE(e.`ordering_key`, e.`aggregate_id`), e.`handler`, e.`status` = 3, e.`attempts`,
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), e.`available_at`), e.`last_error`, LEAST(c.`waiting`, {most})
FROM (
    SELECT k.`seq`, k.`is_head`, SUM(k.`is_pending`) OVER (
        PARTITION BY k.`key`, k.`handler` ORDER BY k.`seq` DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS `waiting`
    FROM (
        SELECT e.`seq`, {key} AS `key`, e.`handler`, 1 AS `is_pending`, e.`status` = 2 AS `is_head`
        FROM {event} e FORCE INDEX (`pillarbox_queue`)
        WHERE e.`queue` IN (0, 1) AND e.`seq` >= {lowest} AND (
            SELECT h.`seq` FROM {event} h FORCE INDEX (`pillarbox_heads`)
            WHERE h.`head` = {key} AND h.`handler` <=> e.`handler` LIMIT 1) IS NOT NULL
        UNION ALL
        SELECT e.`seq`, e.`head`, e.`handler`, 0, 1
        FROM {event} e FORCE INDEX (`pillarbox_queue`)
        WHERE e.`queue` = 3 AND e.`seq` >= {lowest} AND e.`head` IS NOT NULL
    ) k
) c
JOIN {event} e ON e.`seq` = c.`seq`
WHERE c.`is_head` = 1 AND c.`waiting` > 0
ORDER BY c.`seq` LIMIT {limit}
