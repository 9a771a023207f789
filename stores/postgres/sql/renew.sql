-- A lease that has ended goes on as long as nobody has evicted its node.
-- $1 node, $2 lease in microseconds, $3 the end of the lease as the last confirmed renewal left it, in microseconds since 2000, $4 the
-- figures, or NULL for those that are there.
UPDATE {node} SET "expires_at" = clock_timestamp() + $2::bigint * interval '1 microsecond', "lease" = $2::bigint,
    "figures" = coalesce($4::text, "figures")
WHERE "node_id" = $1::text
  AND "expires_at" >= coalesce(timestamptz '2000-01-01 00:00:00+00' + $3::bigint * interval '1 microsecond', '-infinity')
RETURNING "expires_at"
