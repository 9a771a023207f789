-- In one statement, since MariaDB writes the table anew for it. It has the table alone meanwhile: a reader that began then would
-- keep the new table from taking the old one's place, and it would be written again.
ALTER TABLE {event}
    -- The last failed attempts of the row, oldest first: a JSON array of objects with attempts, at (microseconds since 1970), node
    -- and error. NULL until one fails.
    ADD COLUMN `failures` MEDIUMTEXT,
    -- A key of the writer's own: of pending events with the same key and handler there is one. One that has ended keeps it until the next
    -- writer takes it away, so that whoever ends an event need not know of it.
    ADD COLUMN `unique_key` VARBINARY(1020)
    /*M! , LOCK = EXCLUSIVE */;
