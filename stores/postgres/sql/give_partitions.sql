-- $1 node, $2 partitions, $3 the epochs under which the node owned them. Partitions that are not its own, or not under that epoch, are
-- left alone: the request may be late, and the node may have come to own the partition anew.
UPDATE {partition} AS p SET "node_id" = NULL
FROM unnest($2::smallint[], $3::bigint[]) AS given ("partition", "epoch")
WHERE p."node_id" = $1::text AND p."partition" = given."partition" AND p."epoch" = given."epoch"
