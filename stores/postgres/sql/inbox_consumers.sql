-- The consumers behind $1, at most $2, with their oldest message. It goes from one to the next in the index.
WITH RECURSIVE names AS (
    (SELECT "consumer", 1 AS "number" FROM {inbox} WHERE "consumer" > $1::text ORDER BY "consumer" LIMIT 1)
    UNION ALL
    SELECT (SELECT i."consumer" FROM {inbox} i WHERE i."consumer" > n."consumer" ORDER BY i."consumer" LIMIT 1), n."number" + 1
    FROM names n
    WHERE n."consumer" IS NOT NULL AND n."number" < $2::bigint
)
SELECT n."consumer"::text,
    (SELECT i."received_at" FROM {inbox} i WHERE i."consumer" = n."consumer" ORDER BY i."received_at" LIMIT 1),
    clock_timestamp()
FROM names n
WHERE n."consumer" IS NOT NULL
ORDER BY n."number"
