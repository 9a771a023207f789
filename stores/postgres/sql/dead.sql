-- $1 event type, $2 aggregate type, $3 tenant, $4 handler, $5 key, each NULL for any; $6 above, $7 limit.
SELECT "seq", "event_id", "event_type", coalesce("aggregate_type", '__GLOBAL__'), "aggregate_id", "tenant_id",
    "ordering_key", "attempts", "last_error", "created_at", "done_at",
    "handler"
FROM {event}
WHERE "aside" = 3 AND "seq" > $6::bigint
  AND ($1::text IS NULL OR "event_type" = $1::text)
  AND ($2::text IS NULL OR coalesce("aggregate_type", '__GLOBAL__') = $2::text)
  AND ($3::text IS NULL OR "tenant_id" = $3::text)
  AND ($4::text IS NULL OR "handler" = $4::text)
  AND ($5::text IS NULL OR coalesce("ordering_key", "aggregate_id") = $5::text)
ORDER BY "seq"
LIMIT $7::bigint
