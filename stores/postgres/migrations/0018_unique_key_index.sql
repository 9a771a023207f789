-- The state is in neither its columns nor its condition, so that a delivery changes no index, as for all other events.
CREATE UNIQUE INDEX {unique_index} ON {event} ("unique_key", (coalesce("handler", ''))) WHERE "unique_key" IS NOT NULL;
