-- Only a DELETE of several tables may name an index, and that alone is not enough: where a statement needs no column outside of the index,
-- MariaDB reads all of the index, and waits for rows that open transactions have inserted. `status`, which is never NULL, is outside of it.
DELETE e FROM {event} e FORCE INDEX (PRIMARY) WHERE e.`seq` IN ({seqs}) AND e.`status` IS NOT NULL
