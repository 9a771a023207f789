-- $1 node, which leaves: it never owns anything again.
UPDATE {partition} SET "node_id" = NULL WHERE "node_id" = $1::text
