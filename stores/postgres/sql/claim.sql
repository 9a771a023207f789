-- $1 node, $2 above, $3 excluded seqs, $4 limit, $5 the share of the limit for rows with a due time where both kinds abound, $6 bytes
-- of payloads and headers of each kind of rows. Their sums run over the rows as they come: to name their order would have them sorted again.
-- As fetch.sql, of rows that are free or the node's own, which from now on are the node's. The row alone names its holder,
-- never the table of nodes: a row that changed after this statement began is judged anew by its new
-- version, but against the nodes of the moment before, and a node that joined in between would be robbed.
-- The fence is that of a settle: the removal of the node waits for this statement, or it finds no node and no rows.
WITH fence AS MATERIALIZED (
    SELECT FROM {node} WHERE "node_id" = $1::text FOR KEY SHARE
), due AS MATERIALIZED (
    SELECT ctid AS "place", "seq", "locked_by", "available_at", {content_size} AS "content_size" FROM {event} AS e
    WHERE {is_timed} AND "available_at" <= now()
      AND ("locked_by" IS NULL OR "locked_by" IN ('?', '!', $1::text, $1::text || '!'))
      AND "seq" NOT IN (SELECT unnest($3::bigint[]))/* without_types */ AND EXISTS (SELECT FROM fence)
    ORDER BY "available_at", "seq"
    LIMIT $4::bigint
    FOR UPDATE SKIP LOCKED
), ready AS MATERIALIZED (
    SELECT * FROM (
        SELECT ctid AS "place", "seq", "locked_by", "available_at", {content_size} AS "content_size" FROM {event} AS e
        WHERE {is_aside} AND "seq" > $2::bigint
          AND ("locked_by" IS NULL OR "locked_by" IN ('?', '!', $1::text, $1::text || '!'))
          AND "seq" NOT IN (SELECT unnest($3::bigint[]))/* without_types */ AND EXISTS (SELECT FROM fence)
        ORDER BY "seq"
        LIMIT $4::bigint
        FOR UPDATE SKIP LOCKED
    ) "set_aside"
    UNION ALL
    SELECT * FROM (
        SELECT ctid AS "place", "seq", "locked_by", "available_at", {content_size} AS "content_size" FROM {event} AS e
        WHERE {is_plain} AND "seq" > greatest($2::bigint, {read_point})
          AND ("locked_by" IS NULL OR "locked_by" IN ('?', '!', $1::text, $1::text || '!'))
          AND "seq" NOT IN (SELECT unnest($3::bigint[]))/* without_types */ AND EXISTS (SELECT FROM fence)
        ORDER BY "seq"
        LIMIT $4::bigint
        FOR UPDATE SKIP LOCKED
    ) "plain"
    -- The lowest of both: the next read begins above the highest.
    ORDER BY "seq"
    LIMIT $4::bigint - (SELECT least(count(*), $5::bigint) FROM due)
), free AS MATERIALIZED (
    SELECT "place", "seq", "locked_by" FROM (
        SELECT *, sum("content_size") OVER (ROWS UNBOUNDED PRECEDING) AS "content_total" FROM ready
    ) ready WHERE "content_total" - "content_size" < $6::bigint
    UNION ALL
    SELECT "place", "seq", "locked_by" FROM (
        SELECT *, sum("content_size") OVER (ROWS UNBOUNDED PRECEDING) AS "content_total" FROM due
    ) due WHERE "content_total" - "content_size" < $6::bigint
    LIMIT $4::bigint
), taken AS (
    -- By place: the fastest way to rows that are locked and so stay where they are. One that had moved already when it was
    -- locked is not found there; it is left for the next claim. No index names locked_by, so the new version of a row
    -- lands on the same page and no index hears of it.
    UPDATE {event} AS e SET "locked_by" = CASE WHEN "locked_by" IN ('!', $1::text || '!') THEN $1::text || '!' ELSE $1::text END
    WHERE e.ctid = ANY (ARRAY(SELECT "place" FROM free))
    RETURNING "seq", "event_id", "event_type", "aggregate_type", "aggregate_id", "tenant_id", "ordering_key",
        {payload}, {payload_bytes}, "content_type", {headers}, "attempts", "available_at", "occurred_at",
        "created_at", "status", "partition", "handler", "replays"
)
SELECT *, NULL AS "locked_by" FROM taken
UNION ALL
-- The holders of the few rows that were held before, marked by the missing event_id. A join could cost the square of the limit.
SELECT "seq", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, "locked_by"
FROM free WHERE "locked_by" IS NOT NULL
UNION ALL
-- Marked by the missing seq and the missing times: rows were left out for their size.
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL
WHERE (SELECT count(*) FROM free) < least($4::bigint, (SELECT count(*) FROM ready) + (SELECT count(*) FROM due))
UNION ALL
-- The next row to become due, marked by its missing seq: its time, and the time now.
(
    SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "available_at", NULL, now(), NULL,
        NULL, NULL, NULL, NULL
    FROM {event}
    WHERE {is_timed} AND "available_at" > now()/* without_types */
    ORDER BY "available_at", "seq"
    LIMIT 1
)
