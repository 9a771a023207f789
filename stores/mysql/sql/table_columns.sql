-- An INSERT may leave a column out if it is nullable, or has a default, or the server computes or counts it.
SELECT `COLUMN_NAME`, `COLUMN_KEY`, `COLUMN_TYPE`,
    `IS_NULLABLE` = 'NO' AND `COLUMN_DEFAULT` IS NULL AND `EXTRA` NOT LIKE '%GENERATED%' AND `EXTRA` NOT LIKE '%auto_increment%'
FROM `information_schema`.`COLUMNS`
WHERE `TABLE_SCHEMA` = COALESCE({schema}, DATABASE()) AND `TABLE_NAME` = {table}
