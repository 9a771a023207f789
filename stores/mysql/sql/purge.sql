DELETE FROM {event} WHERE `seq` IN ({seqs}) AND `status` = {status}
