-- An event may have several handlers, each with a row of its own: what is unique is the event for a handler, and an event
-- without a handler is one row, as before. An adopted table, whose primary key was the event, gets that of version 1.
DO $$
DECLARE
    "the_id" smallint := (SELECT attnum FROM pg_attribute WHERE attrelid = '{event}'::regclass AND attname = 'event_id');
    "old" text;
BEGIN
    FOR "old" IN
        SELECT conname FROM pg_constraint
        WHERE conrelid = '{event}'::regclass AND contype IN ('p', 'u') AND conkey = ARRAY["the_id"]
    LOOP
        EXECUTE format('ALTER TABLE {event} DROP CONSTRAINT %I', "old");
    END LOOP;
    FOR "old" IN
        SELECT indexrelid::regclass::text FROM pg_index
        WHERE indrelid = '{event}'::regclass AND indisunique AND indpred IS NULL
          AND indnkeyatts = 1 AND indkey[0] = "the_id"
    LOOP
        EXECUTE 'DROP INDEX ' || "old";
    END LOOP;
    IF NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = '{event}'::regclass AND contype = 'p') THEN
        ALTER TABLE {event}
            DROP CONSTRAINT {seq_key},
            ADD CONSTRAINT {event_pk} PRIMARY KEY ("seq") WITH (fillfactor = 50);
    END IF;
END $$;
CREATE UNIQUE INDEX {event_id_key} ON {event} ("event_id", (coalesce("handler", ''))) WITH (fillfactor = 50);
