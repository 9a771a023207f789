WITH named AS MATERIALIZED (
    SELECT {sequence} AS "sequence"
)
SELECT "seqcache" AS "cache", "seqincrement" AS "increment",
    (SELECT count(*) FROM pg_subscription_rel WHERE "srrelid" = to_regclass('{event}')) AS "subscriptions"
FROM named LEFT JOIN pg_sequence ON "seqrelid" = "sequence"
