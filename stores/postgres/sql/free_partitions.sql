UPDATE {partition} p SET "node_id" = NULL
WHERE p."node_id" IS NOT NULL AND NOT EXISTS (SELECT FROM {node} n WHERE n."node_id" = p."node_id")
RETURNING 1
