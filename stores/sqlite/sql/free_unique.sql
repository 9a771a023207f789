-- A row that has ended gives up its key.
UPDATE {event} SET unique_key = NULL
WHERE unique_key = ?1 AND coalesce(handler, '') = coalesce(?2, '') AND status NOT IN (0, 2)
