-- $1 event type, $2 aggregate type, $3 tenant, $4 handler, $5 key, $6 state, each NULL for any; $7 above, $8 limit.
-- Each kind of pending rows by its index. Rows that wait for a time are in the order of time, so all of them are looked at;
-- OFFSET 0 and IS TRUE keep them from the primary key, where the server would pass over all that was delivered.
SELECT "seq", "event_id", "event_type", coalesce("aggregate_type", '__GLOBAL__'), "aggregate_id", "tenant_id", "ordering_key",
    "handler", {pending_state}, "attempts", "last_error", "created_at",
    CASE WHEN "status" = 2 OR "available_at" > "created_at" THEN "available_at" END, "locked_by"
FROM (
    (SELECT * FROM {event}
     WHERE {is_plain} AND "seq" > {read_point} AND "seq" > $7::bigint AND {pending_matching} ORDER BY "seq" LIMIT $8::bigint)
    UNION ALL
    (SELECT * FROM {event}
     WHERE {is_aside} AND "seq" > $7::bigint AND {pending_matching} ORDER BY "seq" LIMIT $8::bigint)
    UNION ALL
    (SELECT * FROM (
        SELECT * FROM {event} WHERE {is_timed} AND ("seq" > $7::bigint) IS TRUE AND {pending_matching} OFFSET 0
     ) AS timed ORDER BY "seq" LIMIT $8::bigint)
) AS e
ORDER BY "seq"
LIMIT $8::bigint
