-- How long a node's lease is, in microseconds: whoever sees that it is not renewed for so long need not believe the clock.
ALTER TABLE {node} ADD COLUMN `lease` BIGINT;
