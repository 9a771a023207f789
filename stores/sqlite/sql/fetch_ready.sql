SELECT {columns}
FROM {event} INDEXED BY {event_ready}
WHERE {ready} AND seq > ?3
  AND seq NOT IN (SELECT value FROM json_each(?2)) AND {free}/* without_types */
ORDER BY seq
LIMIT ?4
