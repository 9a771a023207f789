-- The nodes as reclaim finds them, without a lock: every node asks about once per lease, so it must cost no write.
SELECT
    EXISTS (SELECT FROM {node} WHERE "node_id" = $1::text) AS "registered",
    EXISTS (SELECT FROM {node} WHERE "expires_at" <= clock_timestamp()) AS "expired_nodes",
    (SELECT min("expires_at") FROM {node} WHERE "node_id" <> $1::text AND "expires_at" > clock_timestamp()) AS "next_expiry",
    clock_timestamp() AS "now"
