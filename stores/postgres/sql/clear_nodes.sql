-- Rows need no clearing: while one node owns all partitions, they do not name their owner.
DELETE FROM {node} WHERE "expires_at" <= clock_timestamp()
