-- Added to the three: without rows for some handlers.
 AND (e.`handler` IS NULL OR e.`handler` NOT IN ({handlers}))
