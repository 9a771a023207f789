-- Pending rows held by a node that is not registered, and which one. Read without locks.
SELECT `seq`, `locked_by` FROM {event} FORCE INDEX (`pillarbox_queue`)
WHERE `queue` IN (0, 1) AND `locked_by` NOT IN ('?', '!')
  AND NOT EXISTS (SELECT 1 FROM {node} n WHERE n.`node_id` = TRIM(TRAILING '!' FROM `locked_by`))
LIMIT {limit}
