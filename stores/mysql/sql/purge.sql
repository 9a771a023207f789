-- As delete.sql, of rows that are still in this state.
DELETE e FROM {event} e FORCE INDEX (PRIMARY) WHERE e.`seq` IN ({seqs}) AND e.`status` = {status}
