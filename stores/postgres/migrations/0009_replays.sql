-- How often a row was made NEW again after it had been DEAD: a verdict that was sent before a replay and arrives after it finds
-- another number than it expects, and changes nothing.
ALTER TABLE {event} ADD COLUMN IF NOT EXISTS "replays" INT NOT NULL DEFAULT 0;
-- One that was there already has to be such a column: another type, or a row without a number, ends the migration here.
ALTER TABLE {event} ALTER COLUMN "replays" TYPE INT, ALTER COLUMN "replays" SET DEFAULT 0, ALTER COLUMN "replays" SET NOT NULL;
