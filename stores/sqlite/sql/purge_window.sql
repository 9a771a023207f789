-- The next rows by their primary key: before when a time is old, how many rows there are, the last of them, and whether
-- all of them are young; those that a clock has stamped ahead by more than an hour say nothing about the rows behind them.
SELECT {now} - ?3, count(*), max(seq), min(min(created_at, coalesce(done_at, created_at)) BETWEEN {now} - ?3 + 1 AND {now} + 3600000000)
FROM (SELECT seq, created_at, done_at FROM {event} NOT INDEXED WHERE seq > ?1 ORDER BY seq LIMIT ?2)
