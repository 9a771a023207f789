-- $1 node. The check before a rebalance, without a lock: every node asks about once a second, so it must cost no write. A partition
-- that no registered node owns is free, in spite of the name in it.
SELECT
    EXISTS (SELECT FROM {node} WHERE "node_id" = $1::text) AS "alive",
    EXISTS (SELECT FROM {node} WHERE "expires_at" <= clock_timestamp()) AS "expired_nodes",
    ARRAY(SELECT "node_id"::text FROM {node} WHERE "mode" = 'partitioned'
        ORDER BY "started_at", "node_id") AS "members",
    ARRAY(SELECT "partition" FROM {partition} WHERE "node_id" = $1::text ORDER BY "partition") AS "owned",
    ARRAY(SELECT "epoch" FROM {partition} WHERE "node_id" = $1::text ORDER BY "partition") AS "epochs",
    ARRAY(SELECT "partition" FROM {partition} p
        WHERE NOT EXISTS (SELECT FROM {node} n WHERE n."node_id" = p."node_id")) AS "free",
    ARRAY(SELECT "partition" FROM {partition} WHERE "node_id" = '?') AS "died",
    (SELECT min("expires_at") FROM {node} WHERE "node_id" <> $1::text AND "expires_at" > clock_timestamp()) AS "next_expiry",
    clock_timestamp() AS "now"
