-- As delete.sql. Without `repeated`, which is never NULL, MariaDB reads all messages of the consumer, and waits for those that inbox_old.sql
-- has passed over.
DELETE i FROM {inbox} i FORCE INDEX (PRIMARY)
WHERE i.`consumer` = {consumer} AND i.`message_id` IN ({ids}) AND i.`repeated` IS NOT NULL
