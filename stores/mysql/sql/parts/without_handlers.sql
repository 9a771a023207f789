-- Added to fetch_ready.sql, fetch_due.sql and fetch_times.sql: without rows for some handlers. As bytes, as types are.
 AND (e.`handler` IS NULL OR CAST(e.`handler` AS BINARY) NOT IN ({handlers}))
