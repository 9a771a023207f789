-- Added to fetch_ready.sql and fetch_due.sql: rows of some keys.
 AND ({of_keys})
