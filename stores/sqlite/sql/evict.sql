-- The end of its lease as it was seen: a renewal has changed it.
DELETE FROM {node} WHERE node_id = ?1 AND expires_at = ?2
