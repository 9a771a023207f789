DELETE FROM {node} WHERE node_id = ?1
