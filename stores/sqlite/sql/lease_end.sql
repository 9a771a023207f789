SELECT expires_at FROM {node} WHERE node_id = ?1
