DELETE FROM {event} WHERE `seq` IN ({seqs})
