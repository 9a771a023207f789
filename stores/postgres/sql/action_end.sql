-- $1 entry, $2 rows changed, $3 outcome.
UPDATE {audit} SET "changed" = $2::bigint, "outcome" = $3::text WHERE "id" = $1::bigint
