-- An event may have several handlers, each with a row of its own: what is unique is the event for a handler, and an event
-- without a handler is one row, as before. NULLs differ from each other in a unique key, so it holds a column without them.
-- One statement that happens as a whole or not at all, and that is left out if an interrupted migration got beyond it.
SET @pillarbox_migration = IF(
    EXISTS (SELECT 1 FROM `information_schema`.`COLUMNS`
        WHERE `TABLE_SCHEMA` = {event_schema} AND `TABLE_NAME` = {event_name} AND `COLUMN_NAME` = 'handler_id'),
    'DO 0',
    'ALTER TABLE {event}
        ADD COLUMN `handler_id` VARCHAR(128) GENERATED ALWAYS AS (COALESCE(`handler`, '''')) VIRTUAL,
        DROP KEY `pillarbox_event_id`,
        ADD UNIQUE KEY `pillarbox_event_id` (`event_id`, `handler_id`),
        LOCK = EXCLUSIVE');
PREPARE `pillarbox_migration` FROM @pillarbox_migration;
EXECUTE `pillarbox_migration`;
DEALLOCATE PREPARE `pillarbox_migration`;
