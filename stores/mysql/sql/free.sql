-- Added to the three: rows that the node may take. Its own are those it has forgotten.
 AND (`locked_by` IS NULL OR `locked_by` IN ('?', '!', {id}, {begun}))
