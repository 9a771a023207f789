-- The position at which the receiver has the delivered event, such as TOPIC/PARTITION/OFFSET. NULL unless the handler has reported one.
-- MariaDB writes the table anew: see version 16.
ALTER TABLE {event} ADD COLUMN `delivered_as` VARCHAR(300) /*M! , LOCK = EXCLUSIVE */;
