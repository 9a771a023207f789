-- As recent_end, of the pending rows: each kind by its index. Rows that wait for a time are in the order of time, so all of them are
-- looked at; OFFSET 0 and IS TRUE keep them from the primary key.
SELECT "seq", "created_at" FROM (
    (SELECT "seq", "created_at" FROM {event}
     WHERE {is_plain} AND "seq" > {read_point} AND "seq" < $1::bigint ORDER BY "seq" DESC LIMIT $2::bigint)
    UNION ALL
    (SELECT "seq", "created_at" FROM {event} WHERE {is_aside} AND "seq" < $1::bigint ORDER BY "seq" DESC LIMIT $2::bigint)
    UNION ALL
    (SELECT * FROM (
        SELECT "seq", "created_at" FROM {event} WHERE {is_timed} AND ("seq" < $1::bigint) IS TRUE OFFSET 0
     ) AS timed ORDER BY "seq" DESC LIMIT $2::bigint)
) AS e
ORDER BY "seq" DESC OFFSET $2::bigint - 1 LIMIT 1
