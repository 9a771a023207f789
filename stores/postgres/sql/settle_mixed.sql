-- As settle_done, and in the same transaction every other verdict: $4 ascending seqs, $5 expected attempts, $6 states,
-- $7 attempts, $8 delays in microseconds, $9 errors. A row with negative attempts counts as one that never failed. A RETRY
-- without a delay is held: it stays where it is, and whose it is. Rows that are not kept: $10 ascending seqs, $11 expected
-- attempts.
-- A row finds its verdict by the place of its seq in the array, which width_bucket looks up by halves. A join with the
-- verdicts would be planned by statistics, and where these know of no rows it reads the whole table.
WITH fence AS MATERIALIZED (
    SELECT CASE WHEN $2::bool THEN '' ELSE set_config('synchronous_commit', 'off', true) END
    FROM {node}
    WHERE "node_id" = $1::text{and_owns_the_table}
    FOR KEY SHARE
), done AS (
    UPDATE {event}
    SET "status" = 1, "done_at" = clock_timestamp(), "last_error" = NULL, "locked_by" = NULL
    WHERE "seq" = ANY ((SELECT $3::bigint[])::bigint[]) AND "status" IN (0, 2) AND "attempts" <= 0
      AND EXISTS (SELECT FROM fence){and_is_its_own}
    RETURNING "seq"
), others AS (
    UPDATE {event}
    SET ("status", "attempts", "available_at", "done_at", "last_error", "locked_by") = (
        SELECT v."status", v."attempts",
            CASE WHEN v."status" = 2 AND v."delay" IS NOT NULL
                THEN clock_timestamp() + v."delay" * interval '1 microsecond' ELSE "available_at" END,
            CASE WHEN v."status" IN (1, 3) THEN clock_timestamp() END,
            CASE v."status" WHEN 1 THEN NULL ELSE coalesce(v."error", "last_error") END,
            CASE WHEN v."status" = 2 AND v."delay" IS NULL THEN "locked_by" END
        FROM width_bucket("seq", $4::bigint[]) AS "place"
        CROSS JOIN LATERAL (SELECT
            ($6::smallint[])["place"], ($7::int[])["place"], ($8::bigint[])["place"], ($9::text[])["place"]
        ) AS v ("status", "attempts", "delay", "error"))
    WHERE "seq" = ANY ((SELECT $4::bigint[])::bigint[]) AND "status" IN (0, 2)
      AND greatest("attempts", 0) = ($5::int[])[width_bucket("seq", $4::bigint[])]
      AND EXISTS (SELECT FROM fence){and_is_its_own}
    RETURNING "seq"
), removed AS (
    DELETE FROM {event}
    WHERE "seq" = ANY ((SELECT $10::bigint[])::bigint[]) AND "status" IN (0, 2)
      AND greatest("attempts", 0) = ($11::int[])[width_bucket("seq", $10::bigint[])]
      AND EXISTS (SELECT FROM fence){and_is_its_own}
    RETURNING "seq"
)
SELECT ARRAY(SELECT "seq" FROM done UNION ALL SELECT "seq" FROM others UNION ALL SELECT "seq" FROM removed)
