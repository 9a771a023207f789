-- The oldest rows only: those that a purge begins with, but for rows that a clock has stamped ahead.
SELECT extract(epoch FROM clock_timestamp() - min("done_at"))::bigint
FROM (SELECT "status", "done_at" FROM {event} WHERE "created_at" <= now() + interval '1 hour' ORDER BY "seq" LIMIT 100) AS e WHERE "status" = 1
