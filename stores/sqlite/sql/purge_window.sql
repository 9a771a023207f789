-- The next rows by their primary key: before when a time is old, how many rows there are, the last of them, and whether
-- one of them is not old.
SELECT {now} - ?3, count(*), max(seq), max(created_at > {now} - ?3)
FROM (SELECT seq, created_at FROM {event} NOT INDEXED WHERE seq > ?1 ORDER BY seq LIMIT ?2)
