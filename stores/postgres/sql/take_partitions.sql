-- $1 node, $2 partitions, which were found to be free under the lock of all changes of ownership.
UPDATE {partition} SET "node_id" = $1::text, "epoch" = "epoch" + 1 WHERE "partition" = ANY ($2::smallint[])
RETURNING "partition", "epoch"
