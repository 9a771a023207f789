-- Added to fetch_ready.sql and fetch_due.sql: rows for which heads.sql finds none.
 AND {head}.`seq` IS NULL
