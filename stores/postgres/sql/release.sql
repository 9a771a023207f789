UPDATE {event} SET "locked_by" = NULL
WHERE "seq" = ANY ((SELECT $2::bigint[])::bigint[]) AND "status" IN (0, 2) AND "locked_by" IN ($1::text, $1::text || '!')
