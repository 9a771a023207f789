-- Added to settle_lock.sql, settle_done_at_once.sql and settle_removed_at_once.sql where a node's right to a row is the row's own word.
 AND e.`locked_by` IN ({id}, {begun})
