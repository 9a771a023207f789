SELECT 1 FROM `information_schema`.`SCHEMATA` WHERE `SCHEMA_NAME` = {schema}
