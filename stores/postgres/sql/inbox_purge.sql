-- The oldest messages of the consumer $1, if they were received $2 microseconds ago or before; at most $3. They are found by their
-- place, which rows that are never updated keep.
DELETE FROM {inbox}
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {inbox}
    WHERE "consumer" = $1::text AND "received_at" <= now() - $2::bigint * interval '1 microsecond'
    ORDER BY "received_at"
    LIMIT $3::bigint
    FOR UPDATE SKIP LOCKED
))
