-- The number of pauses, and true if the one of the kind ?1 and the name ?2 is among them.
SELECT count(*), coalesce(max(kind = ?1 AND name = ?2), 0) FROM {pause}
