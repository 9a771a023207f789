DROP INDEX {of_schema}{ready_index}, {of_schema}{due_index};
ALTER INDEX {of_schema}{new_ready_index} RENAME TO {ready_index};
ALTER INDEX {of_schema}{new_due_index} RENAME TO {due_index};
