UPDATE {event} SET `failures` = {failures}, `locked_by` = {begun}, `room` = NULL, `attempts` = {attempts}, `last_error` = COALESCE({error}, `last_error`)
WHERE `seq` = {seq}
