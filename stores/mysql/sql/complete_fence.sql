-- As fence.sql, in the transaction of a handler, which may be at REPEATABLE READ: there everything is locked that complete.sql reads of
-- partitions, and the gaps beside the node. So partition 0 is locked first, as it is by each transaction that changes membership or
-- ownership (lock.sql), which waits here and not in the middle. Completions share the lock.
SELECT 1
FROM {partition} p STRAIGHT_JOIN {node} n FORCE INDEX (`pillarbox_fence`) ON n.`node_id` = ?
WHERE p.`partition` = 0 LOCK IN SHARE MODE
