-- The oldest rows only: those that a purge begins with.
SELECT extract(epoch FROM clock_timestamp() - min("done_at"))::bigint
FROM (SELECT "status", "done_at" FROM {event} ORDER BY "seq" LIMIT 100) AS e WHERE "status" = 1
