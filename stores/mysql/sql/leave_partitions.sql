UPDATE {partition} SET `node_id` = NULL WHERE `node_id` = {id}
