-- In the user's transaction. One row if the message was not there, two if it was; it waits for an open transaction that has recorded it.
-- IGNORE would take other errors for a message that is there.
INSERT INTO {inbox} (`consumer`, `message_id`) VALUES (?, ?) ON DUPLICATE KEY UPDATE `repeated` = 1 - `repeated`
