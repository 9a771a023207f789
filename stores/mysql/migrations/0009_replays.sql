-- How often a row was made NEW again after it had been DEAD: a verdict that was sent before a replay and arrives after it finds
-- another number than it expects, and changes nothing.
-- MariaDB writes the table anew: see version 16.
ALTER TABLE {event} ADD COLUMN `replays` INT NOT NULL DEFAULT 0 /*M! , LOCK = EXCLUSIVE */;
-- One that was there already has to be such a column: a value that is no number, or none, ends the migration here.
ALTER TABLE {event} MODIFY COLUMN `replays` INT NOT NULL DEFAULT 0;
