DELETE FROM {node} WHERE `node_id` = {id}
