-- The first row before a pending one that failed, of its key and handler.
SELECT (
    SELECT min(head.seq) FROM {event} AS head INDEXED BY {event_heads}
    WHERE coalesce(head.ordering_key, head.aggregate_id) = coalesce(later.ordering_key, later.aggregate_id)
      AND head.handler IS later.handler AND head.status IN (2, 3) AND head.seq < later.seq)
FROM {event} AS later
WHERE later.seq = ?1 AND later.status IN (0, 2)
