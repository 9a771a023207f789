-- $1 ascending seqs, $2 partitions. By place in the array, as in settle_mixed.
UPDATE {event} SET "partition" = ($2::smallint[])[width_bucket("seq", $1::bigint[])]
WHERE "seq" = ANY ($1::bigint[]) AND ("partition" IS NULL OR "partition" NOT BETWEEN 0 AND 255)
