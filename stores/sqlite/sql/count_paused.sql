-- The due rows that pauses hold.
WITH pauses AS MATERIALIZED (
    SELECT kind, name FROM {pause} WHERE paused_until IS NULL OR paused_until > {now}
)
SELECT count(*) FROM (
    SELECT event_type, handler FROM {event} INDEXED BY {event_ready} WHERE {ready}
    UNION ALL
    SELECT event_type, handler FROM {event} INDEXED BY {event_due} WHERE {timed} AND available_at <= {now}
)
WHERE event_type IN (SELECT name FROM pauses WHERE kind = 'type')
   OR handler IN (SELECT name FROM pauses WHERE kind = 'handler')
