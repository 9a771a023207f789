-- What belongs to no registered node was its until it was cleared away: who leaves or gives says so by NULL. Whoever takes
-- such a partition has to know.
UPDATE {partition} p SET "node_id" = '?'
WHERE p."node_id" <> '?' AND NOT EXISTS (SELECT FROM {node} n WHERE n."node_id" = p."node_id")
