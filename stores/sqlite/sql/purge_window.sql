-- The next rows by their primary key: before when a time is old, how many rows there are, the last of them, and whether
-- all of them are young.
SELECT {now} - ?3, count(*), max(seq), min(min(created_at, coalesce(done_at, created_at)) > {now} - ?3)
FROM (SELECT seq, created_at, done_at FROM {event} NOT INDEXED WHERE seq > ?1 ORDER BY seq LIMIT ?2)
