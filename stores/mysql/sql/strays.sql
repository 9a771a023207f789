-- Pending rows held by a node that is not registered. Read without locks: nobody else changes them.
SELECT `seq` FROM {event} FORCE INDEX (`pillarbox_queue`)
WHERE `queue` IN (0, 1) AND `locked_by` NOT IN ('?', '!')
  AND NOT EXISTS (SELECT 1 FROM {node} n WHERE n.`node_id` = TRIM(TRAILING '!' FROM `locked_by`))
LIMIT {limit}
