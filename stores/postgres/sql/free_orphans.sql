-- Frees rows of holders that are not registered, under the lock of membership, so that nobody joins meanwhile. A claimed
-- row's due time has passed, so those that wait for theirs are not looked at, however many there are.
-- The second condition of the UPDATE is for rows that changed since: a late release by a dead node may have freed one, and
-- a living node may have claimed it, which the row's new version says.
-- statement_timestamp(), since now() is the time at which this transaction began to wait for the lock.
WITH held AS MATERIALIZED (
    SELECT ctid AS "place", "locked_by" FROM {event}
    WHERE {is_plain} AND "seq" > {read_point} AND "locked_by" NOT IN ('?', '!')
    UNION ALL
    SELECT ctid AS "place", "locked_by" FROM {event}
    WHERE {is_aside} AND "locked_by" NOT IN ('?', '!')
    UNION ALL
    SELECT ctid AS "place", "locked_by" FROM {event}
    WHERE {is_timed} AND "available_at" <= statement_timestamp()
      AND "locked_by" NOT IN ('?', '!')
), orphans AS MATERIALIZED (
    SELECT * FROM held WHERE rtrim("locked_by", '!') NOT IN (SELECT "node_id" FROM {node})
), freed AS (
    UPDATE {event} SET "locked_by" = CASE WHEN "locked_by" LIKE '%!' THEN '!' ELSE '?' END
    WHERE ctid = ANY (ARRAY(SELECT "place" FROM orphans))
      AND "locked_by" = ANY (ARRAY(SELECT DISTINCT "locked_by" FROM orphans))
    RETURNING 1
)
SELECT count(*) FROM freed
