-- Added to the three: without rows for some handlers. As bytes, as types are.
 AND (e.`handler` IS NULL OR CAST(e.`handler` AS BINARY) NOT IN ({handlers}))
