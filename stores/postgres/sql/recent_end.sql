-- The last of the $2 rows below $1 that a page reads, if there are so many.
SELECT "seq", "created_at" FROM {event} WHERE "seq" < $1::bigint AND {of} ORDER BY "seq" DESC OFFSET $2::bigint - 1 LIMIT 1
