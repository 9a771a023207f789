-- As settle_done, and in the same transaction every other verdict: $4 ascending seqs, $5 expected attempts, $6 states,
-- $7 attempts, $8 delays in microseconds, $9 errors. A row with negative attempts counts as one that never failed. A RETRY
-- without a delay is held: it stays where it is, and whose it is.
-- No `= ANY` here: it would hide from the planner that each seq has one row, and with statistics that know of no pending
-- rows it would compare every row with every verdict.
WITH fence AS MATERIALIZED (
    SELECT CASE WHEN $2::bool THEN '' ELSE set_config('synchronous_commit', 'off', true) END
    FROM {node}
    WHERE "node_id" = $1::text{and_owns_the_table}
    FOR KEY SHARE
), done AS (
    UPDATE {event}
    SET "status" = 1, "done_at" = clock_timestamp(), "last_error" = NULL, "locked_by" = NULL
    WHERE "seq" = ANY ($3::bigint[]) AND "status" IN (0, 2) AND "attempts" <= 0
      AND EXISTS (SELECT FROM fence){and_holds_the_row}
    RETURNING "seq"
), others AS (
    UPDATE {event} AS e
    SET "status" = v."status",
        "attempts" = v."attempts",
        "available_at" = CASE WHEN v."status" = 2 AND v."delay" IS NOT NULL
            THEN clock_timestamp() + v."delay" * interval '1 microsecond' ELSE e."available_at" END,
        "done_at" = CASE WHEN v."status" IN (1, 3) THEN clock_timestamp() END,
        "last_error" = CASE v."status" WHEN 1 THEN NULL ELSE coalesce(v."error", e."last_error") END,
        "locked_by" = CASE WHEN v."status" = 2 AND v."delay" IS NULL THEN e."locked_by" END
    FROM unnest($4::bigint[], $5::int[], $6::smallint[], $7::int[], $8::bigint[], $9::text[])
        AS v ("seq", "expected", "status", "attempts", "delay", "error")
    WHERE e."seq" = v."seq" AND e."status" IN (0, 2)
      AND greatest(e."attempts", 0) = v."expected" AND EXISTS (SELECT FROM fence){and_holds_the_row}
    RETURNING e."seq"
)
SELECT ARRAY(SELECT "seq" FROM done UNION ALL SELECT "seq" FROM others)
