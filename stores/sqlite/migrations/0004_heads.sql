-- The heads of keys, which failed and make the later events of their key wait: a reader of a row looks here if it has
-- to. An event that is delivered at its first attempt is never in it.
CREATE INDEX {event_heads} ON {event} (coalesce(ordering_key, aggregate_id), handler, status, seq) WHERE status IN (2, 3);
-- The number of times that operators have replayed, discarded or purged such rows, so that a node reads the rows behind them anew;
-- on the row of partition 0.
ALTER TABLE {partition} ADD COLUMN interventions INTEGER NOT NULL DEFAULT 0;
