-- The order is what counts: the snapshot, of which "highest" speaks, is taken first, the locks are read after. Who had a row
-- below uncommitted at that moment is among those who still hold the lock under which rows are written, or has ended
-- meanwhile. Prepared transactions are among them as well. This statement itself only reads.
-- A transaction goes by two names: a virtual one, which it has from its beginning and loses when the server restarts after it
-- was prepared; and its id, which it has once it has written and keeps.
WITH held AS MATERIALIZED (
    SELECT "locktype", "virtualtransaction", "transactionid" FROM pg_locks
    WHERE "granted" AND ("locktype" = 'transactionid'
        OR "locktype" = 'relation' AND "relation" = '{event}'::regclass AND "mode" = 'RowExclusiveLock'
            AND "database" = (SELECT "oid" FROM pg_database WHERE "datname" = current_database()))
), writer AS (
    SELECT DISTINCT "virtualtransaction" FROM held WHERE "locktype" = 'relation'
)
SELECT coalesce((SELECT "seq" FROM {event} ORDER BY "seq" DESC LIMIT 1), 0) AS "highest",
    ARRAY(SELECT "virtualtransaction" FROM writer
        UNION ALL
        SELECT "transactionid"::text FROM held JOIN writer USING ("virtualtransaction")
        WHERE "locktype" = 'transactionid') AS "open"
