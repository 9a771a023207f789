-- The row stays held as it was, and due in the place of its number.
UPDATE {event} SET `failures` = {failures}, `status` = 2, `attempts` = {attempts}, `last_error` = {error}, `room` = NULL,
    `available_at` = NULL
WHERE `seq` = {seq}
