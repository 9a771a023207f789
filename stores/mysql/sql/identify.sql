SELECT `seq`, `event_id`, `handler` FROM {event} FORCE INDEX (PRIMARY) WHERE `seq` IN ({seqs})
