-- As insert_one, unless a row with the key is pending: $17 the key. One that has ended gives it up first. A row that is not written
-- yields the number of the pending one; a row that another transaction committed while this statement waited for it is not seen.
WITH freed AS (
    UPDATE {event} SET "unique_key" = NULL
    WHERE "unique_key" = $17::text AND coalesce("handler", '') = coalesce($16::text, '') AND "status" NOT IN (0, 2)
    RETURNING 1
), written AS (
    INSERT INTO {event} (
        "event_id", "event_type", "aggregate_type", "aggregate_id", "tenant_id", "ordering_key", "partition",
        "payload", "payload_bytes", "content_type", "headers", "available_at", "occurred_at", "locked_by", "handler", "unique_key")
    SELECT
        $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, ($7::bigint)::smallint,
        ($8::text)::json, $9::bytea, $10::text, ($11::text)::json,
        coalesce(
            timestamptz 'epoch' + $12::bigint / 1000000 * interval '1 second' + $12::bigint % 1000000 * interval '1 microsecond',
            clock_timestamp() + $13::bigint / 1000000 * interval '1 second' + $13::bigint % 1000000 * interval '1 microsecond'),
        timestamptz 'epoch' + $14::bigint / 1000000 * interval '1 second' + $14::bigint % 1000000 * interval '1 microsecond',
        $15::text, $16::text, $17::text
    -- Only once the key is free.
    FROM (SELECT count(*) FROM freed) AS "after"
    ON CONFLICT ("unique_key", (coalesce("handler", ''))) WHERE "unique_key" IS NOT NULL DO NOTHING
    RETURNING "seq"
)
SELECT "seq" FROM written
UNION ALL
SELECT -"seq" FROM {event}
WHERE "unique_key" = $17::text AND coalesce("handler", '') = coalesce($16::text, '') AND "status" IN (0, 2)
  AND NOT EXISTS (SELECT FROM written)
