-- $1 event type, $2 aggregate type, $3 tenant, each NULL for any; $4 above, $5 limit.
SELECT "seq", "event_id", "event_type", coalesce("aggregate_type", '__GLOBAL__'), "aggregate_id", "tenant_id",
    "ordering_key", "attempts", "last_error", "created_at", "done_at"
FROM {event}
WHERE "status" = 3 AND "seq" > $4::bigint
  AND ($1::text IS NULL OR "event_type" = $1::text)
  AND ($2::text IS NULL OR coalesce("aggregate_type", '__GLOBAL__') = $2::text)
  AND ($3::text IS NULL OR "tenant_id" = $3::text)
ORDER BY "seq"
LIMIT $5::bigint
