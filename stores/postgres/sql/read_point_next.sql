-- $1 above, $2 up to: the first row there that waits for its first attempt, and true if it has waited for long.
SELECT "seq", "created_at" < now() - interval '10 seconds' AS "is_old" FROM {event}
WHERE {is_plain} AND "seq" > $1::bigint AND "seq" <= $2::bigint
ORDER BY "seq"
LIMIT 1
