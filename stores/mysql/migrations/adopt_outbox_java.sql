-- Turns a table of outbox-java into ours, in one statement that happens as a whole or not at all. Its writers go on:
-- what they insert is still a row, `seq` comes by itself, and a unique key takes over from their primary key. Rows get
-- their `seq` in the order of event_id, which in a table of ULIDs is that of their creation. It locks the table before it copies
-- the rows: if a transaction of a reader kept it from locking the table afterwards, it would have copied them in vain.
ALTER TABLE {event}
    CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    DROP PRIMARY KEY,
    ADD COLUMN `seq` BIGINT NOT NULL AUTO_INCREMENT FIRST,
    ADD COLUMN `ordering_key` VARCHAR(255),
    ADD COLUMN `partition` SMALLINT,
    ADD COLUMN `handler` VARCHAR(128),
    ADD COLUMN `payload_bytes` LONGBLOB,
    ADD COLUMN `content_type` VARCHAR(128),
    ADD COLUMN `occurred_at` DATETIME(6),
    MODIFY COLUMN `payload` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    MODIFY COLUMN `headers` LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    MODIFY COLUMN `status` SMALLINT NOT NULL DEFAULT 0,
    MODIFY COLUMN `attempts` INT NOT NULL DEFAULT 0,
    MODIFY COLUMN `available_at` DATETIME(6),
    MODIFY COLUMN `created_at` DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    ADD COLUMN `queue` TINYINT GENERATED ALWAYS AS (CASE WHEN `status` IN (0, 2) THEN IF(`available_at` IS NULL OR `status` = 0 AND `available_at` <= `created_at`, 0, 1) WHEN `status` = 3 THEN 3 END) STORED,
    ADD COLUMN `due_at` DATETIME(6) GENERATED ALWAYS AS (CASE WHEN `status` = 2 OR `status` = 0 AND `available_at` > `created_at` THEN `available_at` END) STORED,
    ADD COLUMN `room` BINARY(48) DEFAULT '',
    ADD PRIMARY KEY (`seq`),
    ADD UNIQUE KEY `pillarbox_event_id` (`event_id`),
    ADD KEY `pillarbox_queue` (`queue`, `due_at`, `seq`),
    LOCK = EXCLUSIVE
