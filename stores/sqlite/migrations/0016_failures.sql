-- The last failed attempts of the row, oldest first: a JSON array of objects with attempts, at, node and error. NULL until one fails.
ALTER TABLE {event} ADD COLUMN failures TEXT;
