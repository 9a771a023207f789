-- Added to settle_done_at_once.sql and settle_removed_at_once.sql: rows of these events, without a handler.

    AND e.`event_id` IN ({events}) AND e.`handler` IS NULL
