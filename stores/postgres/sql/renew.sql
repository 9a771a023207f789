UPDATE {node} SET "expires_at" = clock_timestamp() + $2::bigint * interval '1 microsecond'
WHERE "node_id" = $1::text AND "expires_at" > clock_timestamp()
RETURNING 1
