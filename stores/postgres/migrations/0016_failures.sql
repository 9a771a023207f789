-- The last failed attempts of the row, oldest first: an array of objects with attempts, at (microseconds since 1970), node and error.
-- NULL until one fails.
ALTER TABLE {event} ADD COLUMN IF NOT EXISTS "failures" JSONB;
-- One that was there already has to be such a column, or becomes one: what cannot be converted ends the migration here.
ALTER TABLE {event} ALTER COLUMN "failures" TYPE JSONB, ALTER COLUMN "failures" DROP DEFAULT, ALTER COLUMN "failures" DROP NOT NULL;
