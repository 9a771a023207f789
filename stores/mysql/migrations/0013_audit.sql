-- What operators have done: an entry is written before each change of theirs, and what became of it after it.
CREATE TABLE IF NOT EXISTS {audit} (
    `id`       BIGINT NOT NULL AUTO_INCREMENT,
    `began_at` DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    `who`      VARCHAR(100) NOT NULL,
    `action`   VARCHAR(64) NOT NULL,
    `subject`  VARCHAR(2000) NOT NULL,
    `changed`  BIGINT,
    `outcome`  VARCHAR(500),
    PRIMARY KEY (`id`)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- One that was there already has to be such a table: else the migration ends here.
SELECT `id`, `began_at`, `who`, `action`, `subject`, `changed`, `outcome` FROM {audit} WHERE FALSE;
-- What a node has done since it joined, as of its last renewal: a JSON object. NULL for releases that record none.
ALTER TABLE {node} ADD COLUMN `figures` VARCHAR(255);
