-- Deletes, of the oldest ?2 entries, the ones that began ?1 ago or before.
DELETE FROM {audit}
WHERE id IN (SELECT id FROM (SELECT id, began_at FROM {audit} ORDER BY id LIMIT ?2) WHERE began_at <= {now} - ?1)
