SELECT node_id, mode FROM {node} WHERE expires_at > {now} AND node_id <> ?1
