-- Added to settle_lock.sql, settle_done_at_once.sql and settle_removed_at_once.sql where a node's right to a row is that to its
-- partition. Read without a lock, as in fence.sql: nobody but the node itself gives its partitions away while it is registered.
-- A scalar subquery is not turned into a join, which could read the rows in another order.
 AND (SELECT p.`node_id` FROM {partition} p WHERE p.`partition` = e.`partition`) = {id}
