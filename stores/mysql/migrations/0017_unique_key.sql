-- By the key to the byte: as text, `a` and `a ` would be the same. Its columns are NULL for an event without a key, and NULLs differ.
ALTER TABLE {event}
    ADD UNIQUE KEY `pillarbox_unique_key` (`unique_key`, `handler_id`),
    ALGORITHM = INPLACE, LOCK = NONE;
