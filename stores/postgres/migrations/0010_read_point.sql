-- On the row of partition 0: the seq at or below which no event waits for its first attempt and none can be committed any more,
-- so that reading begins above it; which sequence the numbers came from, and which file of it, since numbers that begin anew make the point worthless; the
-- proof of the next point; up to which intervention of operators the point was found; when it was moved, and when it was last
-- found from the first row on.
ALTER TABLE {partition}
    ADD COLUMN IF NOT EXISTS "read_point" BIGINT,
    ADD COLUMN IF NOT EXISTS "read_point_sequence" OID,
    ADD COLUMN IF NOT EXISTS "read_point_numbers" BIGINT,
    ADD COLUMN IF NOT EXISTS "read_point_proof" TEXT,
    ADD COLUMN IF NOT EXISTS "read_point_interventions" BIGINT,
    ADD COLUMN IF NOT EXISTS "read_point_moved_at" TIMESTAMPTZ,
    ADD COLUMN IF NOT EXISTS "read_point_checked_at" TIMESTAMPTZ;
