-- $1 kind, $2 name, $3 microseconds until it ends or NULL, $4 author, $5 reason, $6 pauses at most. Pauses that have ended go, but for a row of
-- this name, which begins anew. Returns true if it was paused before, and true if it is now.
WITH ended AS (
    DELETE FROM {pause} WHERE "paused_until" <= now() AND NOT ("kind" = $1::text AND "name" = $2::text)
), living AS MATERIALIZED (
    SELECT "kind", "name" FROM {pause} WHERE "paused_until" IS NULL OR "paused_until" > now()
), found AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM living WHERE "kind" = $1::text AND "name" = $2::text) AS "paused"
), written AS (
    INSERT INTO {pause} AS s ("kind", "name", "paused_at", "paused_until", "paused_by", "reason")
    SELECT $1::text, $2::text, now(), now() + $3::bigint * interval '1 microsecond', $4::text, $5::text
    WHERE (SELECT "paused" FROM found) OR (SELECT count(*) FROM living) < $6::bigint
    ON CONFLICT ("kind", "name") DO UPDATE SET
        "paused_at" = CASE WHEN s."paused_until" <= now() THEN now() ELSE s."paused_at" END,
        "paused_until" = excluded."paused_until", "paused_by" = excluded."paused_by", "reason" = excluded."reason"
    RETURNING 1
)
SELECT (SELECT "paused" FROM found), EXISTS (SELECT FROM written)
