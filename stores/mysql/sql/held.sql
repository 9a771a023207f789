-- Added to settle_lock.sql where a node's right to a row is the row's own word.
 AND e.`locked_by` IN ({id}, {begun})
