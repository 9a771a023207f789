-- The last of the ?2 rows below ?1 that a page reads, if there are so many.
SELECT seq, created_at FROM {rows} WHERE {of} AND seq < ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2 - 1
