-- How often operators have replayed, discarded or purged such rows, so that whoever reads what waited behind them starts over;
-- on the row of partition 0.
ALTER TABLE {partition} ADD COLUMN "interventions" BIGINT NOT NULL DEFAULT 0;
