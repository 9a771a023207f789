SELECT node_id FROM {node} WHERE expires_at > {now} ORDER BY node_id LIMIT 1
