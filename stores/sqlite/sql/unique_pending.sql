-- The row that has the key, unless it is that of the event `?3`: the one that was just inserted.
SELECT -seq FROM {event}
WHERE unique_key = ?1 AND coalesce(handler, '') = coalesce(?2, '') AND status IN (0, 2) AND event_id <> ?3
