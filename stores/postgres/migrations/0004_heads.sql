-- The number of times that operators have replayed, discarded or purged such rows, so that a node reads the rows behind them anew;
-- on the row of partition 0.
ALTER TABLE {partition} ADD COLUMN "interventions" BIGINT NOT NULL DEFAULT 0;
