-- What keeps later events of its key waiting, key by key. A row delivered at its first attempt never enters this index, so
-- that in most tables it is all but empty. Keys compare byte by byte, as they do in memory.
-- The state stands before seq: whoever looks for RETRY rows of a key does not pass over all that is DEAD of it.
CREATE INDEX {head_index} ON {event} (coalesce("ordering_key", "aggregate_id") COLLATE "C", "status", "seq")
    WHERE "status" IN (2, 3);
