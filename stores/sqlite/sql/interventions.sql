-- The number of times that operators have replayed, discarded or purged DEAD rows; if ?1, true if any row is RETRY or DEAD; and the end
-- of the lease of node ?2.
SELECT interventions, ?1 AND EXISTS (SELECT 1 FROM {event} INDEXED BY {event_heads} WHERE status IN (2, 3)),
    (SELECT expires_at FROM {node} WHERE node_id = ?2)
FROM {partition} WHERE partition = 0
