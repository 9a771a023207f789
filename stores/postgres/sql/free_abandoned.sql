-- A partition of a node that is not registered was owned until the node was evicted: a node that leaves or gives writes NULL.
-- The next owner has to know.
UPDATE {partition} p SET "node_id" = '?'
WHERE p."node_id" <> '?' AND NOT EXISTS (SELECT FROM {node} n WHERE n."node_id" = p."node_id")
