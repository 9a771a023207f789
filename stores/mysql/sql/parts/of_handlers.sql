-- Added to settle_done_at_once.sql and settle_removed_at_once.sql: rows of these events and handlers.

    AND (e.`event_id`, e.`handler`) IN ({pairs})
