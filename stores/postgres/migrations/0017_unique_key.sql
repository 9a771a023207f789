-- A key of the writer's own: of pending events with the same key and handler there is one. One that has ended keeps it until the next
-- writer takes it away, so that whoever ends an event need not know of it.
ALTER TABLE {event} ADD COLUMN IF NOT EXISTS "unique_key" VARCHAR(255) COLLATE "C";
-- One that was there already has to be such a column, or becomes one: what cannot be converted ends the migration here.
ALTER TABLE {event} ALTER COLUMN "unique_key" TYPE VARCHAR(255) COLLATE "C", ALTER COLUMN "unique_key" DROP DEFAULT,
    ALTER COLUMN "unique_key" DROP NOT NULL;
