-- Pending and dead rows come from their partial indexes; all other rows have been delivered.
WITH pending (status) AS (
    SELECT status FROM {event} INDEXED BY {event_ready} WHERE {ready}
    UNION ALL
    SELECT status FROM {event} INDEXED BY {event_due} WHERE {timed}
)
SELECT (SELECT count(*) FROM pending WHERE status = 0),
       (SELECT count(*) FROM pending WHERE status = 2),
       (SELECT count(*) FROM {event} INDEXED BY {event_dead} WHERE status = 3),
       (SELECT count(*) FROM {event}),
       (SELECT count(*) FROM {event} WHERE status = 1 AND last_error = {cancelled})
