UPDATE {partition} SET `node_id` = {id}, `epoch` = `epoch` + 1 WHERE `partition` IN ({partitions})
