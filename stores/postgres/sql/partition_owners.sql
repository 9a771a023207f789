-- A partition of a node that is not registered has no owner.
SELECT p."partition", p."node_id" FROM {partition} p JOIN {node} n ON n."node_id" = p."node_id" ORDER BY p."partition"
