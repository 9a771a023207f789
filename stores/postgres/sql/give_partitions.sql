-- $1 node, $2 partitions, those included that are not its own and are left alone.
UPDATE {partition} SET "node_id" = NULL WHERE "node_id" = $1::text AND "partition" = ANY ($2::smallint[])
