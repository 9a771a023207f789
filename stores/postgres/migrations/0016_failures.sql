-- The last failed attempts of the row, oldest first: an array of objects with attempts, at (microseconds since 1970), node and error.
-- NULL until one fails.
ALTER TABLE {event} ADD COLUMN IF NOT EXISTS "failures" JSONB;
