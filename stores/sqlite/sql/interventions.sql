-- How often operators have replayed, discarded or purged DEAD rows; and, if ?1, whether any row is RETRY or DEAD.
SELECT interventions, ?1 AND EXISTS (SELECT 1 FROM {event} INDEXED BY {event_heads} WHERE status IN (2, 3))
FROM {partition} WHERE partition = 0
