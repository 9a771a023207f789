-- Each kind of pending rows by its index. Rows that wait for a time are in the order of time, so all of them are looked at, and as many
-- are sorted as a page has. The materialized parts hold numbers alone: SQLite would keep every column that is named there, payloads too.
WITH ready (seq) AS MATERIALIZED (
    SELECT seq FROM {event} INDEXED BY {event_ready}
    WHERE {ready} AND seq > ?7 AND {pending_matching}
    ORDER BY seq LIMIT ?8
),
timed (seq) AS MATERIALIZED (
    SELECT seq FROM {event} INDEXED BY {event_due}
    WHERE {timed} AND seq > ?7 AND {pending_matching}
    ORDER BY seq LIMIT ?8
),
page (seq) AS MATERIALIZED (
    SELECT seq FROM ready UNION ALL SELECT seq FROM timed ORDER BY seq LIMIT ?8
)
SELECT seq, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, handler, {pending_state}, attempts,
       last_error, created_at, CASE WHEN status = 2 OR available_at > created_at THEN available_at END, locked_by
FROM page CROSS JOIN {event} USING (seq)
ORDER BY page.seq
