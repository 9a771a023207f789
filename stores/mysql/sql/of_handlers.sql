
    AND (e.`event_id`, e.`handler`) IN ({pairs})
