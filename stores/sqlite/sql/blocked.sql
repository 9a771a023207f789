-- No index finds the pending rows of a key. So they are all read once, and the ones with a head before them are kept;
-- in these few every head then finds its own.
WITH waiting (key, handler, seq) AS MATERIALIZED (
    SELECT coalesce(ordering_key, aggregate_id), handler, seq
    FROM {event} INDEXED BY {event_ready}
    WHERE {ready} AND seq > ?1 AND EXISTS ({heads})
    UNION ALL
    SELECT coalesce(ordering_key, aggregate_id), handler, seq
    FROM {event} INDEXED BY {event_due}
    WHERE {timed} AND seq > ?1 AND EXISTS ({heads})
),
blocking (seq) AS MATERIALIZED (
    SELECT head.seq
    FROM {event} AS head INDEXED BY {event_heads}
    WHERE head.status IN (2, 3) AND head.seq > ?1
      AND EXISTS (
          SELECT 1 FROM waiting
          WHERE waiting.key = coalesce(head.ordering_key, head.aggregate_id) AND waiting.handler IS head.handler
            AND waiting.seq > head.seq
      )
    ORDER BY head.seq
    LIMIT ?2
)
SELECT head.seq, head.event_id, head.event_type, coalesce(head.ordering_key, head.aggregate_id), head.handler,
       head.status = 3, head.attempts, max(head.available_at, 0) - {now}, head.last_error,
       (SELECT count(*) FROM (
           SELECT 1 FROM waiting
           WHERE waiting.key = coalesce(head.ordering_key, head.aggregate_id) AND waiting.handler IS head.handler
             AND waiting.seq > head.seq
           LIMIT {most_counted}
       ))
FROM blocking CROSS JOIN {event} AS head USING (seq)
ORDER BY blocking.seq
