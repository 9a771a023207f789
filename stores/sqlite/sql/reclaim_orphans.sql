-- Whether any row says that a node holds it that is not registered.
SELECT EXISTS (
    SELECT 1 FROM {event} INDEXED BY {event_ready}
    WHERE status IN (0, 2) AND available_at IS NULL AND {orphan}
) OR EXISTS (
    SELECT 1 FROM {event} INDEXED BY {event_due}
    WHERE status IN (0, 2) AND available_at IS NOT NULL AND available_at <= {now} AND {orphan}
)
