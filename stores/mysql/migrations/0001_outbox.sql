-- One row per event. The defaults make INSERT (event_id, event_type, payload) from any language a valid event, whatever
-- the time zone of its session: all times are UTC. Text is compared byte by byte.
CREATE TABLE IF NOT EXISTS {event} (
    `seq`            BIGINT NOT NULL AUTO_INCREMENT,
    `event_id`       VARCHAR(36) NOT NULL,
    `event_type`     VARCHAR(128) NOT NULL,
    `aggregate_type` VARCHAR(64),
    `aggregate_id`   VARCHAR(128),
    `tenant_id`      VARCHAR(64),
    `ordering_key`   VARCHAR(255),
    `partition`      SMALLINT,
    `handler`        VARCHAR(128),
    `payload`        LONGTEXT,            -- JSON, as text: it comes back as it was written
    `payload_bytes`  LONGBLOB,            -- instead of payload, with content_type
    `content_type`   VARCHAR(128),
    `headers`        LONGTEXT,            -- a JSON object of strings
    `status`         SMALLINT NOT NULL DEFAULT 0,      -- 0 NEW, 1 DONE, 2 RETRY, 3 DEAD
    `attempts`       INT NOT NULL DEFAULT 0,
    `available_at`   DATETIME(6),         -- NULL: at once
    `occurred_at`    DATETIME(6),
    `created_at`     DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    `done_at`        DATETIME(6),
    `last_error`     TEXT,
    `locked_by`      VARCHAR(128),
    -- What an index of some rows only would say: 0 due at once, 1 waits for its time, 3 DEAD; DONE rows are none of these.
    `queue`          TINYINT GENERATED ALWAYS AS (CASE WHEN `status` IN (0, 2) THEN IF(`available_at` IS NULL, 0, 1) WHEN `status` = 3 THEN 3 END) STORED,
    `due_at`         DATETIME(6) GENERATED ALWAYS AS (CASE WHEN `status` IN (0, 2) THEN `available_at` END) STORED,
    -- A place kept free: rows lie close together, and one that grows when it is taken or settled would have to move and
    -- split its page. Who makes a row longer gives this up for it, which makes both several times faster.
    `room`           BINARY(48) DEFAULT '',
    PRIMARY KEY (`seq`),
    UNIQUE KEY `pillarbox_event_id` (`event_id`),
    -- What may be delivered at once, oldest first; what waits for its time, the next first; what is DEAD, oldest first.
    KEY `pillarbox_queue` (`queue`, `due_at`, `seq`)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The running nodes. A node lives until expires_at, by this database's clock.
CREATE TABLE IF NOT EXISTS {node} (
    `node_id`    VARCHAR(128) NOT NULL,
    `mode`       VARCHAR(32) NOT NULL,
    `started_at` DATETIME(6) NOT NULL,
    `expires_at` DATETIME(6) NOT NULL,
    PRIMARY KEY (`node_id`),
    -- What settles lock, so that they are in the way of the node's removal and not of its renewal; see fence.sql.
    KEY `pillarbox_fence` (`node_id`)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Who owns which group of keys; the epoch counts the changes of owner.
CREATE TABLE IF NOT EXISTS {partition} (
    `partition` SMALLINT NOT NULL,
    `node_id`   VARCHAR(128),
    `epoch`     BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (`partition`)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO {partition} (`partition`)
    WITH RECURSIVE `numbers` (`n`) AS (SELECT 0 UNION ALL SELECT `n` + 1 FROM `numbers` WHERE `n` < 255)
    SELECT `n` FROM `numbers`;
