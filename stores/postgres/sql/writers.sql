-- The order counts: the snapshot, of which "highest" speaks, is taken first, the locks are read after. A transaction with a row
-- below uncommitted at that moment still holds the lock under which rows are written, or has ended
-- meanwhile. Prepared transactions are among them as well. This statement itself only reads.
-- A transaction goes by two names: a virtual one, which it has from its beginning and loses when the server restarts after it
-- was prepared (before 14.1, 13.5 and 12.9 as soon as it is prepared); and its id, which it has once it has written and keeps. One
-- may be seen by its virtual name alone, while a trigger runs before its first row, and go by another when it is seen again. So
-- prepared ones, which no process runs, are named apart as well.
-- After a copy or an upgrade by logical replication the sequence may stand below rows that are there: then the table is complete up to no more
-- than its last number. No snapshot holds it, so it is read before the locks: until "numbers" is known, no lock is read.
WITH named AS MATERIALIZED (
    SELECT {sequence} AS "sequence"
), numbers AS MATERIALIZED (
    SELECT {numbers_are_in_order} AS "are_in_order", {last_number} AS "last" FROM named
), held AS MATERIALIZED (
    SELECT "locktype", "virtualtransaction", "transactionid", "pid" FROM pg_locks
    WHERE (SELECT count(*) FROM numbers) = 1 AND "granted" AND ("locktype" = 'transactionid'
        OR "locktype" = 'relation' AND "relation" = '{event}'::regclass AND "mode" = 'RowExclusiveLock'
            AND "database" = (SELECT "oid" FROM pg_database WHERE "datname" = current_database()))
), writer AS (
    SELECT DISTINCT "virtualtransaction", "pid" IS NULL AS "prepared" FROM held WHERE "locktype" = 'relation'
), name AS MATERIALIZED (
    SELECT "virtualtransaction" AS "name", "prepared" FROM writer
    UNION ALL
    SELECT "transactionid"::text, "prepared" FROM held JOIN writer USING ("virtualtransaction")
    WHERE "locktype" = 'transactionid'
)
SELECT least(coalesce((SELECT "seq" FROM {event} ORDER BY "seq" DESC LIMIT 1), 0), (SELECT "last" FROM numbers)) AS "highest",
    ARRAY(SELECT "name" FROM name) AS "open",
    ARRAY(SELECT "name" FROM name WHERE "prepared") AS "prepared",
    (SELECT "are_in_order" FROM numbers) AS "are_in_order",
    (SELECT "last" FROM numbers) AS "last"
