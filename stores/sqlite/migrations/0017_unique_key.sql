-- A key of the writer's own: of pending events with the same key and handler there is one. One that has ended keeps it until the next
-- writer takes it away, so that whoever ends an event need not know of it.
ALTER TABLE {event} ADD COLUMN unique_key TEXT;
CREATE UNIQUE INDEX {event_unique} ON {event} (unique_key, coalesce(handler, '')) WHERE unique_key IS NOT NULL;
