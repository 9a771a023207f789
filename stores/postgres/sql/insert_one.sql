-- Times arrive as microseconds since 1970. Whole seconds and the rest are added apart: an interval is multiplied in
-- floating point, which is exact for each of the two but not for their sum.
INSERT INTO {event} (
    "event_id", "event_type", "aggregate_type", "aggregate_id", "tenant_id", "ordering_key", "partition",
    "payload", "payload_bytes", "content_type", "headers", "available_at", "occurred_at", "locked_by", "handler")
VALUES (
    $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, ($7::bigint)::smallint,
    ($8::text)::json, $9::bytea, $10::text, ($11::text)::json,
    coalesce(
        timestamptz 'epoch' + $12::bigint / 1000000 * interval '1 second' + $12::bigint % 1000000 * interval '1 microsecond',
        clock_timestamp() + $13::bigint / 1000000 * interval '1 second' + $13::bigint % 1000000 * interval '1 microsecond'),
    timestamptz 'epoch' + $14::bigint / 1000000 * interval '1 second' + $14::bigint % 1000000 * interval '1 microsecond',
    $15::text, $16::text)
RETURNING "seq"
