DELETE FROM {node} WHERE expires_at <= {now}
