-- Statements that make tables commit by themselves, so this lock is the session's, and the session is closed afterwards.
-- It is the server's too: the name says which database is meant.
SELECT GET_LOCK(CONCAT('pillarbox:', SHA1(CONCAT(COALESCE({schema}, DATABASE(), ''), '.', {table}))), {seconds})
