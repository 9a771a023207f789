-- Reads nothing, and fails if a table or an index is missing.
SELECT 1 FROM {event} INDEXED BY {event_ready}, {node}, {partition}
WHERE status IN (0, 2) AND available_at IS NULL AND {event}.seq IS NULL
