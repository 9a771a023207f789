-- $1 ascending seqs. The time is asked for in a way that does not lead the planner to the index of all that is due.
UPDATE {event} SET "available_at" = NULL
WHERE "seq" = ANY ($1::bigint[]) AND "status" = 0
  AND coalesce("available_at", 'infinity') <= now()
