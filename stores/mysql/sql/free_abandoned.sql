-- Partitions of nodes that are not registered any more become free, and say that their owner died: one that left, or gave
-- them away, has taken its name out. Run after evict.sql, it also finds those that an earlier release left behind.
UPDATE {partition} SET `node_id` = '?' WHERE `node_id` <> '?' AND `node_id` NOT IN (SELECT n.`node_id` FROM {node} n)
