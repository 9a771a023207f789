-- The due rows that pauses hold.
WITH pauses AS MATERIALIZED (
    SELECT "kind", "name" FROM {pause} WHERE "paused_until" IS NULL OR "paused_until" > now()
)
SELECT count(*) FROM (
    SELECT "event_type", "handler" FROM {ready} AS e
    UNION ALL
    SELECT "event_type", "handler" FROM {event} WHERE {is_timed} AND "available_at" <= now()
) due
WHERE "event_type" IN (SELECT "name" FROM pauses WHERE "kind" = 'type')
    OR "handler" IN (SELECT "name" FROM pauses WHERE "kind" = 'handler')
