-- The first look of acquire, without a lock: it tells if anything has to be changed, and the answer if not. A standby asks this
-- every second, so it must cost no write. At most one other node owns partitions, so both min() speak of the same one.
SELECT
    EXISTS (SELECT FROM {node} WHERE "node_id" = $1::text) AS "alive",
    EXISTS (SELECT FROM {node} WHERE "expires_at" <= clock_timestamp()) AS "expired_nodes",
    count(*) FILTER (WHERE p."node_id" = $1::text) AS "owned",
    count(*) AS "partitions",
    max(p."epoch") AS "epoch",
    min(n."node_id") FILTER (WHERE n."node_id" <> $1::text) AS "owner",
    min(n."expires_at") FILTER (WHERE n."node_id" <> $1::text) AS "owner_expires_at",
    clock_timestamp() AS "now",
    coalesce(bool_or(p."node_id" = '?'), false) AS "unclean"
FROM {partition} p LEFT JOIN {node} n ON n."node_id" = p."node_id"
