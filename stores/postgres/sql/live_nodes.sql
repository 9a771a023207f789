SELECT "node_id", "mode" FROM {node} WHERE "expires_at" > clock_timestamp() ORDER BY "started_at"
