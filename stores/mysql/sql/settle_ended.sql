UPDATE {event} SET `failures` = {failures}, `status` = {status}, `attempts` = {attempts}, `done_at` = UTC_TIMESTAMP(6), `last_error` = {error},
    `locked_by` = NULL, `room` = NULL
WHERE `seq` = {seq}
