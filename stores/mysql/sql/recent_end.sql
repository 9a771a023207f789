-- The last of the rows that a page reads, if there are so many.
SELECT `seq`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `created_at`) FROM {event} FORCE INDEX ({index})
WHERE `seq` < {below}{of} ORDER BY `seq` DESC LIMIT {but_one}, 1
