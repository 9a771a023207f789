-- The heads of keys, which failed and make the later events of their key wait: whoever reads a row asks here whether it has
-- to. An event that is delivered at its first attempt is never in it.
CREATE INDEX {event_heads} ON {event} (coalesce(ordering_key, aggregate_id), handler, status, seq) WHERE status IN (2, 3);
-- How often operators have replayed, discarded or purged such rows, so that whoever reads what waited behind them starts over;
-- on the row of partition 0.
ALTER TABLE {partition} ADD COLUMN interventions INTEGER NOT NULL DEFAULT 0;
