-- On the row of partition 0: the seq at or below which no event waits for its first attempt and none can be committed any more, so
-- that reading begins above it. It holds for the numbers of one sequence, as long as they do not begin anew, which gives it another
-- file; and as long as nobody has made rows pending by hand, which is an intervention. The state is what the next point rests on.
ALTER TABLE {partition}
    ADD COLUMN IF NOT EXISTS "read_point" BIGINT,
    ADD COLUMN IF NOT EXISTS "read_point_sequence" OID,
    ADD COLUMN IF NOT EXISTS "read_point_numbers" BIGINT,
    ADD COLUMN IF NOT EXISTS "read_point_interventions" BIGINT,
    ADD COLUMN IF NOT EXISTS "read_point_state" TEXT,
    ADD COLUMN IF NOT EXISTS "read_point_moved_at" TIMESTAMPTZ,
    ADD COLUMN IF NOT EXISTS "read_point_checked_at" TIMESTAMPTZ;
