-- The event types and handlers of which no call begins. Bytes, since collations take texts for the same that are not.
CREATE TABLE IF NOT EXISTS {pause} (
    `kind`         VARBINARY(16) NOT NULL,
    `name`         VARBINARY(512) NOT NULL,
    `paused_at`    DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    `paused_until` DATETIME(6),
    `paused_by`    VARCHAR(255),
    `reason`       VARCHAR(1000),
    PRIMARY KEY (`kind`, `name`)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- One that was there already has to be such a table: else the migration ends here.
SELECT `kind`, `name`, `paused_at`, `paused_until`, `paused_by`, `reason` FROM {pause} WHERE FALSE;
