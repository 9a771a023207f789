-- One row if the node is registered, which tells if it owns the table; and the lock that keeps it so until the transaction ends.
-- The lock is on the entry of an index that renewals do not touch, and that covers the query, so that the row itself stays
-- unlocked: the removal of the node waits for this transaction, or this one finds no entry. Renewals wait for neither.
-- The subquery reads without a lock, since to change the owner one has to remove the node first.
SELECT EXISTS (SELECT 1 FROM {partition} WHERE `partition` = 0 AND `node_id` = {id})
FROM {node} FORCE INDEX (`pillarbox_fence`) WHERE `node_id` = {id} LOCK IN SHARE MODE
