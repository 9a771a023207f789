-- How often operators have replayed, discarded or purged DEAD rows; if ?1, whether any row is RETRY or DEAD; and when the lease of
-- node ?2 ends.
SELECT interventions, ?1 AND EXISTS (SELECT 1 FROM {event} INDEXED BY {event_heads} WHERE status IN (2, 3)),
    (SELECT expires_at FROM {node} WHERE node_id = ?2)
FROM {partition} WHERE partition = 0
