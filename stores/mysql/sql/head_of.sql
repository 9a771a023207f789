-- The first row before a pending one that failed, of its key and handler.
SELECT (
    SELECT MIN(h.`seq`) FROM {event} h FORCE INDEX (`pillarbox_heads`)
    WHERE h.`head` = {key} AND h.`handler` <=> e.`handler` AND h.`seq` < e.`seq`)
FROM {event} e WHERE e.`seq` = {seq} AND e.`status` IN (0, 2)
