-- Added to fetch_ready.sql, fetch_due.sql and fetch_times.sql: rows of some partitions, and rows that are not assigned to one yet;
-- a partition that does not exist is as good as none.
 AND (e.`partition` BETWEEN {first} AND {last} OR e.`partition` IS NULL OR e.`partition` NOT BETWEEN 0 AND 255)
