-- All nodes in the order in which they joined, and the rest of their leases.
SELECT `node_id`, `mode`, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), `expires_at`) FROM {node} ORDER BY `started_at`, `node_id`
