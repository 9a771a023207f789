-- Rows that came to be of the state ?4 before ?3, or were created before if they do not say; without a state, rows that were
-- created before. ?5 is their key, or NULL for any.
DELETE FROM {event} NOT INDEXED
WHERE seq > ?1 AND seq <= ?2
  AND CASE WHEN ?4 IS NULL THEN created_at <= ?3 ELSE status = ?4 AND coalesce(done_at, created_at) <= ?3 END
  AND (?5 IS NULL OR coalesce(ordering_key, aggregate_id) = ?5)
