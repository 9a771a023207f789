-- $1 node, $2 the end of its lease as it was seen: a renewal has changed it.
-- Whole seconds and the rest are added apart, as in insert_one.sql.
DELETE FROM {node} WHERE "node_id" = $1::text
    AND "expires_at" = timestamptz 'epoch' + $2::bigint / 1000000 * interval '1 second' + $2::bigint % 1000000 * interval '1 microsecond'
RETURNING 1
