UPDATE {node} SET expires_at = {now} + ?2 WHERE node_id = ?1 AND expires_at > {now}
