-- Added to fetch_ready.sql, fetch_due.sql and fetch_times.sql: rows that the node may take. Its own are those it has forgotten.
 AND (e.`locked_by` IS NULL OR e.`locked_by` IN ('?', '!', {id}, {begun}))
