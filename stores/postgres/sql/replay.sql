UPDATE {event}
SET "status" = 0, "attempts" = 0, "available_at" = NULL, "done_at" = NULL, "last_error" = NULL, "locked_by" = NULL
WHERE "seq" = ANY ($1::bigint[]) AND "status" = 3
RETURNING "seq"
