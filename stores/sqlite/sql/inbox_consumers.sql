-- The consumers behind ?1, at most ?2, and the time since the oldest message of each. It goes from one to the next in the index.
WITH RECURSIVE names (name) AS (
    SELECT (SELECT consumer FROM {inbox} INDEXED BY {inbox_age} WHERE consumer > ?1 ORDER BY consumer LIMIT 1)
    UNION ALL
    SELECT (SELECT consumer FROM {inbox} INDEXED BY {inbox_age} WHERE consumer > name ORDER BY consumer LIMIT 1) FROM names WHERE name IS NOT NULL
    LIMIT ?2
)
SELECT name, {now} - (SELECT min(received_at) FROM {inbox} INDEXED BY {inbox_age} WHERE consumer = name)
FROM names WHERE name IS NOT NULL
