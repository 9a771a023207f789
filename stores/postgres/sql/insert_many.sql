-- One statement for any number of rows: its text does not depend on their number. Sorted by position, because
-- identity values are given in the order of the sort.
INSERT INTO {event} (
    "event_id", "event_type", "aggregate_type", "aggregate_id", "tenant_id", "ordering_key", "partition",
    "payload", "payload_bytes", "content_type", "headers", "available_at", "occurred_at", "locked_by", "handler")
SELECT
    "c1", "c2", "c3", "c4", "c5", "c6", "c7"::smallint, "c8"::json, "c9", "c10", "c11"::json,
    coalesce(
        timestamptz 'epoch' + "c12" / 1000000 * interval '1 second' + "c12" % 1000000 * interval '1 microsecond',
        clock_timestamp() + "c13" / 1000000 * interval '1 second' + "c13" % 1000000 * interval '1 microsecond'),
    timestamptz 'epoch' + "c14" / 1000000 * interval '1 second' + "c14" % 1000000 * interval '1 microsecond',
    "c15", "c16"
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[],
    $8::text[], $9::bytea[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[],
    $15::text[], $16::text[])
    WITH ORDINALITY AS "rows" ("c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "c12", "c13",
        "c14", "c15", "c16", "position")
ORDER BY "position"
RETURNING "seq"
