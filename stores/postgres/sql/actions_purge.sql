-- Deletes, of the oldest $2 entries, the ones that began $1 microseconds ago or before.
DELETE FROM {audit}
WHERE "id" = ANY (ARRAY(
    SELECT "id" FROM (SELECT "id", "began_at" FROM {audit} ORDER BY "id" LIMIT $2::bigint) AS oldest
    WHERE "began_at" <= now() - $1::bigint * interval '1 microsecond'
))
