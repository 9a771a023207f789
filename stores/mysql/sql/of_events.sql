
    AND e.`event_id` IN ({events}) AND e.`handler` IS NULL
