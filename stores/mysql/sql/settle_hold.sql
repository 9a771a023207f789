-- The row keeps its place; if its due time meant no delay while it was NEW, it means none now.
UPDATE {event} SET `failures` = {failures}, `status` = 2, `attempts` = {attempts}, `last_error` = {error}, `room` = NULL,
    `available_at` = IF(`available_at` <= `created_at`, NULL, `available_at`)
WHERE `seq` = {seq}
