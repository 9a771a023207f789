-- True if this node is registered, true if any is to be evicted, and the time until the next lease of another one ends.
SELECT EXISTS (SELECT 1 FROM {node} WHERE node_id = ?1),
       EXISTS (SELECT 1 FROM {node} WHERE expires_at <= {now}),
       (SELECT min(expires_at) - {now} FROM {node} WHERE node_id <> ?1 AND expires_at > {now})
