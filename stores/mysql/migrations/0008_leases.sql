-- The length of a node's lease, in microseconds: a node that sees no renewal for so long need not believe the clock.
ALTER TABLE {node} ADD COLUMN `lease` BIGINT;
