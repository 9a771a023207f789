CREATE TABLE IF NOT EXISTS {migration} (
    `version`    INT NOT NULL,
    `applied_at` DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    PRIMARY KEY (`version`)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
