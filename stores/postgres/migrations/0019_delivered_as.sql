-- The position at which the receiver has the delivered event, such as TOPIC/PARTITION/OFFSET. NULL unless the handler has reported one.
ALTER TABLE {event} ADD COLUMN IF NOT EXISTS "delivered_as" VARCHAR(300);
-- One that was there already has to be such a column, or becomes one: what cannot be converted ends the migration here.
ALTER TABLE {event} ALTER COLUMN "delivered_as" TYPE VARCHAR(300), ALTER COLUMN "delivered_as" DROP DEFAULT,
    ALTER COLUMN "delivered_as" DROP NOT NULL;
