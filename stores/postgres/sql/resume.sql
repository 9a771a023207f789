-- $1 kind, $2 name. Says whether the pause that was there had not ended.
DELETE FROM {pause} WHERE "kind" = $1::text AND "name" = $2::text
RETURNING "paused_until" IS NULL OR "paused_until" > now()
