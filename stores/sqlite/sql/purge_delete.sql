-- Rows that came to be of the state ?4 before ?3; without a state, rows that were created before.
DELETE FROM {event} NOT INDEXED
WHERE seq > ?1 AND seq <= ?2
  AND CASE WHEN ?4 IS NULL THEN created_at <= ?3 ELSE status = ?4 AND done_at <= ?3 END
