-- From above the read point, and from the indexes of rows that are set aside: of DONE rows, it looks only at the ones delivered since the
-- point was raised.
WITH ready AS (
    SELECT count(*) AS "rows", min("created_at") AS "since" FROM {ready} AS e
), due AS (
    SELECT count(*) AS "rows", min("available_at") AS "since" FROM {event}
    WHERE {is_timed} AND "available_at" <= now()
)
SELECT
    ready."rows" + due."rows" AS "due",
    (SELECT count(*) FROM {event}
     WHERE {is_timed} AND "available_at" > now()) AS "delayed",
    (SELECT count(*) FROM {event} WHERE "aside" = 3) AS "dead",
    least(ready."since", due."since") AS "oldest_due",
    now() AS "now"
FROM ready, due
