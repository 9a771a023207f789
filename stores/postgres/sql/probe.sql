-- What acquire finds, without a lock: whether anything has to be changed, and the answer if not. A standby asks this
-- every second, so it must cost no write.
SELECT
    EXISTS (SELECT FROM {node} WHERE "node_id" = $1::text AND "expires_at" > clock_timestamp()) AS "alive",
    EXISTS (SELECT FROM {node} WHERE "expires_at" <= clock_timestamp()) AS "expired_nodes",
    count(*) FILTER (WHERE p."node_id" = $1::text) AS "owned",
    count(*) AS "partitions",
    max(p."epoch") AS "epoch",
    (
        SELECT n."node_id" FROM {node} n JOIN {partition} o USING ("node_id")
        WHERE n."node_id" <> $1::text ORDER BY o."partition" LIMIT 1
    ) AS "owner",
    (
        SELECT n."expires_at" FROM {node} n JOIN {partition} o USING ("node_id")
        WHERE n."node_id" <> $1::text ORDER BY o."partition" LIMIT 1
    ) AS "owner_expires_at",
    clock_timestamp() AS "now"
FROM {partition} p
