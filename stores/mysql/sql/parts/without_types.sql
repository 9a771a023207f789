-- Added to fetch_ready.sql, fetch_due.sql and fetch_times.sql: without events of some types. As bytes: to the column's collation
-- a name and the same with a space behind it are one.
 AND CAST(e.`event_type` AS BINARY) NOT IN ({types})
