-- Added to the three: without events of some types.
 AND e.`event_type` NOT IN ({types})
