-- Added to fetch_ready.sql and fetch_due.sql: without the rows of some keys of a handler. Rows without a key stay.
 AND {of_keys} IS NOT TRUE
