-- The locks from which a reader knows that nothing below is uncommitted, see writers.sql. This statement holds one on the view that it
-- reads, so a server that tells of locks tells of this one.
SELECT version() AS "server", EXISTS (
    SELECT FROM pg_locks
    WHERE "locktype" = 'relation' AND "relation" = 'pg_catalog.pg_locks'::regclass AND "mode" = 'AccessShareLock' AND "granted"
      AND "pid" = pg_backend_pid() AND "virtualtransaction" IS NOT NULL
) AS "tells_of_locks"
