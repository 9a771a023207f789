-- As settle_done, and in the same transaction every other verdict: $6 ascending seqs, $7 event ids, $8 handlers, $9 expected
-- attempts, $10 expected replays, $11 states, $12 attempts, $13 delays in microseconds, $14 errors. A row with negative attempts
-- counts as one that never failed. A RETRY without a delay is held: it stays where it is, and whose it is. Rows that are not kept:
-- $15 ascending seqs, $16 event ids, $17 handlers, $18 expected attempts, $19 expected replays. $20 of the other verdicts, the
-- errors that rows keep of a failed attempt, NULL without one. Rows that keep positions have them by the values from $21 on.
-- A row finds its verdict by the place of its seq in the array, which width_bucket looks up by halves. A join with the
-- verdicts would be planned by statistics, and where these know of no rows it reads the whole table.
WITH fence AS MATERIALIZED (
    SELECT CASE WHEN $2::bool THEN '' ELSE set_config('synchronous_commit', 'off', true) END
    FROM {node}
    WHERE "node_id" = $1::text{and_owns_the_table}
    FOR KEY SHARE
), named AS MATERIALIZED (
    SELECT
        ARRAY(SELECT {fingerprint} FROM unnest($4::text[], $5::text[]) AS v ("event_id", "handler")) AS "done",
        ARRAY(SELECT {fingerprint} FROM unnest($7::text[], $8::text[]) AS v ("event_id", "handler")) AS "others",
        ARRAY(SELECT {fingerprint} FROM unnest($16::text[], $17::text[]) AS v ("event_id", "handler")) AS "removed"
), done AS (
    UPDATE {event}
    SET "status" = 1, "done_at" = clock_timestamp(), "last_error" = NULL, "locked_by" = NULL{and_position}
    WHERE "seq" = ANY ((SELECT $3::bigint[])::bigint[]) AND "status" IN (0, 2) AND "attempts" <= 0 AND "replays" = 0
      AND {fingerprint} = (SELECT "done" FROM named)[width_bucket("seq", $3::bigint[])]
      AND EXISTS (SELECT FROM fence){and_is_its_own}
    RETURNING "seq"
), others AS (
    UPDATE {event}
    SET ("status", "attempts", "available_at", "done_at", "last_error", "locked_by", "failures") = (
        SELECT v."status", v."attempts",
            CASE WHEN v."status" = 2 AND v."delay" IS NOT NULL
                THEN clock_timestamp() + v."delay" * interval '1 microsecond'
                -- A row that is held keeps its place, which is that of its number.
                WHEN v."status" = 2 THEN NULL
                ELSE "available_at" END,
            CASE WHEN v."status" IN (1, 3) THEN clock_timestamp() END,
            CASE v."status" WHEN 1 THEN v."error" ELSE coalesce(v."error", "last_error") END,
            CASE WHEN v."status" = 2 AND v."delay" IS NULL THEN "locked_by" END,
            CASE WHEN v."failure" IS NULL THEN "failures" ELSE {failed} END
        FROM width_bucket("seq", $6::bigint[]) AS "place"
        CROSS JOIN LATERAL (SELECT
            ($11::smallint[])["place"], ($12::int[])["place"], ($13::bigint[])["place"], ($14::text[])["place"],
            ($20::text[])["place"]
        ) AS v ("status", "attempts", "delay", "error", "failure")){and_position}
    WHERE "seq" = ANY ((SELECT $6::bigint[])::bigint[]) AND "status" IN (0, 2)
      AND greatest("attempts", 0) = ($9::int[])[width_bucket("seq", $6::bigint[])]
      AND "replays" = ($10::int[])[width_bucket("seq", $6::bigint[])]
      AND {fingerprint} = (SELECT "others" FROM named)[width_bucket("seq", $6::bigint[])]
      AND EXISTS (SELECT FROM fence){and_is_its_own}
    RETURNING "seq"
), removed AS (
    DELETE FROM {event}
    WHERE "seq" = ANY ((SELECT $15::bigint[])::bigint[]) AND "status" IN (0, 2)
      AND greatest("attempts", 0) = ($18::int[])[width_bucket("seq", $15::bigint[])]
      AND "replays" = ($19::int[])[width_bucket("seq", $15::bigint[])]
      AND {fingerprint} = (SELECT "removed" FROM named)[width_bucket("seq", $15::bigint[])]
      AND EXISTS (SELECT FROM fence){and_is_its_own}
    RETURNING "seq"
)
SELECT ARRAY(SELECT "seq" FROM done UNION ALL SELECT "seq" FROM others UNION ALL SELECT "seq" FROM removed)
