UPDATE {event} SET "locked_by" = NULL
WHERE "seq" = ANY ($2::bigint[]) AND "status" IN (0, 2) AND "locked_by" IN ($1::text, $1::text || '!')
