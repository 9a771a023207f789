UPDATE {event} SET `failures` = {failures}, `status` = 2, `attempts` = {attempts},
    `available_at` = TIMESTAMPADD(MICROSECOND, {delay}, UTC_TIMESTAMP(6)),
    `last_error` = COALESCE({error}, `last_error`), `locked_by` = NULL, `room` = NULL
WHERE `seq` = {seq}
