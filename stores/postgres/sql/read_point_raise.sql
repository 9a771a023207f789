-- $1 the point, or NULL to leave it where it is, $2 the proof of the next one, $3 the proof that was used, $4 the interventions that
-- were known, $5 whether the point was found from the first row on. Whoever holds the row, to join or to leave, is not waited for.
WITH known AS MATERIALIZED (
    SELECT FROM {partition}
    WHERE "partition" = 0 AND "read_point_proof" IS NOT DISTINCT FROM $3::text
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {partition}
SET "read_point_proof" = $2::text,
    "read_point" = coalesce($1::bigint, "read_point"),
    "read_point_sequence" = CASE WHEN $1::bigint IS NULL THEN "read_point_sequence" ELSE {sequence} END,
    "read_point_numbers" =
        CASE WHEN $1::bigint IS NULL THEN "read_point_numbers" ELSE pg_relation_filenode({sequence})::bigint END,
    "read_point_interventions" = CASE WHEN $1::bigint IS NULL THEN "read_point_interventions" ELSE $4::bigint END,
    "read_point_moved_at" = CASE WHEN $1::bigint IS NULL THEN "read_point_moved_at" ELSE now() END,
    "read_point_checked_at" = CASE WHEN $5::bool THEN now() ELSE "read_point_checked_at" END
WHERE "partition" = 0 AND EXISTS (SELECT FROM known)
RETURNING 1
