-- The same node may join again: its first attempt may have been committed without an answer.
INSERT INTO {node} ("node_id", "mode", "started_at", "expires_at", "lease")
VALUES ($1::text, $2::text, clock_timestamp(), clock_timestamp() + $3::bigint * interval '1 microsecond', $3::bigint)
ON CONFLICT ("node_id") DO UPDATE
SET "mode" = excluded."mode", "expires_at" = excluded."expires_at", "lease" = excluded."lease"
