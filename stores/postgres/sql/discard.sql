DELETE FROM {event} WHERE "seq" = ANY ($1::bigint[]) AND "status" = 3 RETURNING "seq"
