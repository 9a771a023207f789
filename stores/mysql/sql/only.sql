-- Added to due.sql and ready.sql: rows of some keys.
 AND ({of_keys})
