-- $1 event type, $2 aggregate type, $3 tenant, $4 handler, $5 key, $6 created since, $7 created before, $8 text in the error, $9 state,
-- $10 event id, each NULL for any; the rows from $12 on and below $11, at most $13. The text is compared byte by byte.
SELECT "seq", "event_id", "event_type", coalesce("aggregate_type", '__GLOBAL__'), "aggregate_id", "tenant_id", "ordering_key",
    "handler", "status", "attempts", "last_error", "created_at",
    CASE WHEN "status" = 2 OR "status" = 0 AND "available_at" > "created_at" THEN "available_at" END, "done_at", "locked_by"
FROM {rows} AS e
WHERE "seq" < $11::bigint AND "seq" >= $12::bigint AND {of} AND {attributes}
  AND ($6::timestamptz IS NULL OR "created_at" >= $6::timestamptz)
  AND ($7::timestamptz IS NULL OR "created_at" < $7::timestamptz)
  AND ($8::text IS NULL OR strpos("last_error" COLLATE "C", $8::text) > 0)
  AND ($9::smallint IS NULL OR "status" = $9::smallint)
  AND ($10::text IS NULL OR "event_id" = $10::text)
ORDER BY "seq" DESC
LIMIT $13::bigint
