-- The database alone gives numbers. One that a program made up would not be taken into account by those given after it, and a
-- high one would say of rows that are still to come that they had been read.
ALTER TABLE {event} ALTER COLUMN "seq" SET GENERATED ALWAYS;
