-- The heads of keys: rows that wait for another attempt or are DEAD, behind which the later ones of their key and handler
-- may have to wait. For other rows the columns are NULL, so that a row that is delivered at its first attempt stays where
-- it is in the index. The columns are computed when they are read, so that a table with rows need not be written anew, and
-- its writers go on meanwhile.
ALTER TABLE {event}
    -- The key to the byte: as text, `a` and `a ` would be the same.
    ADD COLUMN `head` VARBINARY(1020) GENERATED ALWAYS AS (CASE WHEN `status` IN (2, 3) THEN CAST(COALESCE(`ordering_key`, `aggregate_id`) AS BINARY) END) VIRTUAL,
    ADD COLUMN `failing` SMALLINT GENERATED ALWAYS AS (CASE WHEN `status` IN (2, 3) THEN `status` END) VIRTUAL,
    ALGORITHM = INPLACE, LOCK = NONE;
-- With its partition in the index, a row of another node's is passed over without being read.
ALTER TABLE {event}
    DROP KEY `pillarbox_queue`,
    ADD KEY `pillarbox_queue` (`queue`, `due_at`, `seq`, `partition`),
    ADD KEY `pillarbox_heads` (`head`, `handler`, `failing`, `seq`),
    ALGORITHM = INPLACE, LOCK = NONE;
-- How often operators have replayed, discarded or purged such rows, so that whoever reads what waited behind them starts over;
-- on the row of partition 0.
ALTER TABLE {partition} ADD COLUMN `interventions` BIGINT NOT NULL DEFAULT 0;
