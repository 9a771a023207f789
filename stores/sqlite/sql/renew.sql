-- A lease that has ended goes on as long as nobody has evicted its node.
-- ?3 is the end of the lease as the last confirmed renewal left it, ?4 the figures, or NULL for those that are there.
UPDATE {node} SET expires_at = {now} + ?2, lease = ?2, figures = coalesce(?4, figures) WHERE node_id = ?1 AND expires_at >= coalesce(?3, 0)
RETURNING expires_at
