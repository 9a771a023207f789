-- A NEW row whose due time is not after its creation is not delayed: it stands among those without a due time.
-- To change what a stored column is computed from, the server writes the table anew, and all others wait meanwhile. So this is
-- left out where the columns are as they should be: a table that was adopted has them from the beginning.
SET @pillarbox_migration = IF(
    EXISTS (SELECT 1 FROM `information_schema`.`COLUMNS`
        WHERE `TABLE_SCHEMA` = {event_schema} AND `TABLE_NAME` = {event_name} AND `COLUMN_NAME` = 'due_at'
          AND `GENERATION_EXPRESSION` LIKE '%created_at%'),
    'DO 0',
    'ALTER TABLE {event}
        MODIFY COLUMN `queue` TINYINT GENERATED ALWAYS AS (CASE WHEN `status` IN (0, 2) THEN IF(`available_at` IS NULL OR `status` = 0 AND `available_at` <= `created_at`, 0, 1) WHEN `status` = 3 THEN 3 END) STORED,
        MODIFY COLUMN `due_at` DATETIME(6) GENERATED ALWAYS AS (CASE WHEN `status` = 2 OR `status` = 0 AND `available_at` > `created_at` THEN `available_at` END) STORED,
        LOCK = EXCLUSIVE');
PREPARE `pillarbox_migration` FROM @pillarbox_migration;
EXECUTE `pillarbox_migration`;
DEALLOCATE PREPARE `pillarbox_migration`;
