-- Partitions that are not the node's own, or not under the epoch named, are left alone: the request may be late, and the node may
-- have come to own the partition anew.
UPDATE {partition} SET `node_id` = NULL WHERE (`partition`, `epoch`) IN ({given}) AND `node_id` = {id}
