UPDATE {event} SET `status` = 2, `attempts` = {attempts}, `last_error` = {error}, `room` = NULL WHERE `seq` = {seq}
