-- The indexes by which the releases before find rows: they name the state, so that each delivery has to change them.
DROP INDEX {of_schema}{ready_index}, {of_schema}{due_index}, {of_schema}{dead_index}, {of_schema}{head_index};
-- These get no second entry for a row any more, or hardly ever.
ALTER INDEX {of_schema}{event_pk} SET (fillfactor = 90);
ALTER INDEX {of_schema}{event_id_key} SET (fillfactor = 90);
ALTER INDEX {of_schema}{new_due_index} RENAME TO {due_index};
ALTER INDEX {of_schema}{new_dead_index} RENAME TO {dead_index};
ALTER INDEX {of_schema}{new_head_index} RENAME TO {head_index};
