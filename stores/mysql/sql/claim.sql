UPDATE {event} FORCE INDEX (PRIMARY) SET `locked_by` = IF(`locked_by` IN ('!', {begun}), {begun}, {id}), `room` = NULL WHERE `seq` IN ({seqs})
