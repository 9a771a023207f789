SELECT {columns}
FROM {event} INDEXED BY {event_due}
WHERE {timed} AND available_at <= ?3
  AND seq NOT IN (SELECT value FROM json_each(?2)) AND {free}/* without_types */
ORDER BY available_at, seq
LIMIT ?4
