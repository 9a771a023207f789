-- $1 event type, $2 aggregate type, $3 tenant, $4 handler, $5 key, $6 since, $7 before, $8 text in the error, each NULL for
-- any. The text is compared byte by byte.
SELECT count(*) FROM {event}
WHERE "aside" = 3
  AND {attributes}
  AND ($6::timestamptz IS NULL OR coalesce("done_at", "created_at") >= $6::timestamptz)
  AND ($7::timestamptz IS NULL OR coalesce("done_at", "created_at") < $7::timestamptz)
  AND ($8::text IS NULL OR strpos("last_error" COLLATE "C", $8::text) > 0)
