-- How often a row was made NEW again after it had been DEAD: a verdict that was sent before a replay and arrives after it finds
-- another number than it expects, and changes nothing.
ALTER TABLE {event} ADD COLUMN replays INTEGER NOT NULL DEFAULT 0 CHECK (replays BETWEEN 0 AND 4294967295);
