-- $1 node, $2 whether to commit durably, and of rows that never failed and were never replayed $3 ascending seqs, $4 event ids one
-- behind the other, each of $5 bytes, $6 handler of all: the common case, and the fastest form of an UPDATE. The fence holds the
-- node's own row: either a takeover, which deletes that row, waits for this statement, or this statement finds it gone and changes nothing. Renewals, which
-- only update it, are not in the way. Of the conditions in braces at the end of a line, which are those of the kind of fence, one is empty.
-- Rows that keep positions have them by the values from $7 on.
-- A row's event id is compared with that at the place of its seq in the array.
WITH fence AS MATERIALIZED (
    SELECT CASE WHEN $2::bool THEN '' ELSE set_config('synchronous_commit', 'off', true) END
    FROM {node}
    WHERE "node_id" = $1::text{and_owns_the_table}
    FOR KEY SHARE
), done AS (
    UPDATE {event}
    SET "status" = 1, "done_at" = clock_timestamp(), "last_error" = NULL, "locked_by" = NULL{and_position}
    WHERE {is_among_them} AND "status" IN (0, 2) AND "attempts" <= 0 AND "replays" = 0
      AND {event_is_named}
      AND EXISTS (SELECT FROM fence){and_is_its_own}
    RETURNING "seq"
)
SELECT ARRAY(SELECT "seq" FROM done)
