UPDATE {partition} SET `node_id` = NULL WHERE `partition` IN ({partitions}) AND `node_id` = {id}
