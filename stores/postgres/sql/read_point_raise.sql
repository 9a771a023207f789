-- $1 the point, $2 the state, $3 the state that it follows, $4 the interventions that had been counted when its check began, $5 the
-- sequence and $6 its file, $7 true if the point has been checked. A node that holds the row, to join or to leave, is not waited for.
WITH known AS MATERIALIZED (
    SELECT FROM {partition}
    WHERE "partition" = 0 AND "read_point_state" IS NOT DISTINCT FROM $3::text
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {partition}
SET "read_point" = $1::bigint, "read_point_state" = $2::text, "read_point_sequence" = $5::oid, "read_point_numbers" = $6::bigint, "read_point_moved_at" = now(),
    "read_point_interventions" = CASE WHEN $7::bool THEN $4::bigint ELSE "read_point_interventions" END,
    "read_point_checked_at" = CASE WHEN $7::bool THEN now() ELSE "read_point_checked_at" END
WHERE "partition" = 0 AND EXISTS (SELECT FROM known)
RETURNING 1
