-- Rows that are set aside and need no due time: they stand among those that wait for their first attempt.
CREATE INDEX {aside_index} ON {event} ("seq")
    WHERE "aside" IN (0, 2) AND ("available_at" IS NULL OR "aside" = 0 AND "available_at" <= "created_at");
-- Those that wait for a time.
CREATE INDEX {new_due_index} ON {event} ("available_at", "seq")
    WHERE "aside" IN (0, 2) AND "available_at" IS NOT NULL AND ("aside" = 2 OR "available_at" > "created_at");
CREATE INDEX {new_dead_index} ON {event} ("seq") WHERE "aside" = 3;
-- The state stands before seq: whoever looks for RETRY rows of a key does not pass over all that is DEAD of it.
CREATE INDEX {new_head_index} ON {event} (coalesce("ordering_key", "aggregate_id") COLLATE "C", "aside", "seq")
    WHERE "aside" IN (2, 3);
