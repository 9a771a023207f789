UPDATE {partition} SET node_id = ?1, epoch = (SELECT max(epoch) + 1 FROM {partition})
