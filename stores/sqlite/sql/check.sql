-- Reads nothing, and fails if a table or an index is missing.
SELECT 1 FROM {event} INDEXED BY {event_ready} CROSS JOIN {node} CROSS JOIN {partition} CROSS JOIN {inbox} INDEXED BY {inbox_age} CROSS JOIN {pause} CROSS JOIN {audit}
WHERE {ready} AND {event}.seq IS NULL
