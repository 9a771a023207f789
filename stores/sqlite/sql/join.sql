-- Joining twice, after an answer that was lost, is joining once.
INSERT INTO {node} (node_id, mode, started_at, expires_at, lease) VALUES (?1, ?2, {now}, {now} + ?3, ?3)
ON CONFLICT (node_id) DO UPDATE SET mode = excluded.mode, expires_at = excluded.expires_at, lease = excluded.lease
