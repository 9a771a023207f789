-- Reads nothing, and fails if a table or an index is missing.
SELECT 1 FROM {event} INDEXED BY {event_ready}, {node}, {partition}
WHERE {ready} AND {event}.seq IS NULL
