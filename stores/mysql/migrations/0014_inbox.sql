-- The messages that consumers have received, each recorded in the transaction of what was done with it. Bytes, since collations take
-- texts for the same that are not. `repeated` changes at each later receipt: by that the server's answer tells those from the first,
-- whatever the client has asked it to count.
CREATE TABLE IF NOT EXISTS {inbox} (
    `consumer`    VARBINARY(64) NOT NULL,
    `message_id`  VARBINARY(255) NOT NULL,
    `received_at` DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    `repeated`    TINYINT NOT NULL DEFAULT 0,
    PRIMARY KEY (`consumer`, `message_id`),
    -- The oldest messages of a consumer, which are purged first.
    KEY `pillarbox_inbox_age` (`consumer`, `received_at`)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- One that was there already has to be such a table: else the migration ends here.
SELECT `consumer`, `message_id`, `received_at`, `repeated` FROM {inbox} FORCE INDEX (`pillarbox_inbox_age`) WHERE FALSE;
