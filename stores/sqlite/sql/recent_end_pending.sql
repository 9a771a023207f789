-- As recent_end, of the pending rows. Rows that wait for a time are in the order of time, so all of them are looked at.
SELECT seq, created_at FROM (
    SELECT * FROM (
        SELECT seq, created_at FROM {event} INDEXED BY {event_ready} WHERE {ready} AND seq < ?1 ORDER BY seq DESC LIMIT ?2
    )
    UNION ALL
    SELECT * FROM (
        SELECT seq, created_at FROM {event} INDEXED BY {event_due} WHERE {timed} AND seq < ?1 ORDER BY seq DESC LIMIT ?2
    )
)
ORDER BY seq DESC LIMIT 1 OFFSET ?2 - 1
