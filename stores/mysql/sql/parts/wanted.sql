-- Added to fetch_ready.sql, fetch_due.sql and fetch_times.sql: without the rows the node has in memory. The sum hides the list
-- from the optimizer, which would make a range of the index for every gap in it.
 AND e.`seq` + 0 NOT IN ({seqs})
