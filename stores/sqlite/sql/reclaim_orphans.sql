-- True if any row names a holder that is not registered.
SELECT EXISTS (
    SELECT 1 FROM {event} INDEXED BY {event_ready}
    WHERE {ready} AND {orphan}
) OR EXISTS (
    SELECT 1 FROM {event} INDEXED BY {event_due}
    WHERE {timed} AND available_at <= {now} AND {orphan}
)
