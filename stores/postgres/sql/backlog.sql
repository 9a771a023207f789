-- From the indexes of pending and of DEAD rows alone; what is DONE is never looked at.
WITH ready AS (
    SELECT count(*) AS "rows", min("created_at") AS "since" FROM {event}
    WHERE {is_ready}
), due AS (
    SELECT count(*) AS "rows", min("available_at") AS "since" FROM {event}
    WHERE {is_timed} AND "available_at" <= now()
)
SELECT
    ready."rows" + due."rows" AS "due",
    (SELECT count(*) FROM {event}
     WHERE {is_timed} AND "available_at" > now()) AS "delayed",
    (SELECT count(*) FROM {event} WHERE "status" = 3) AS "dead",
    least(ready."since", due."since") AS "oldest_due",
    now() AS "now"
FROM ready, due
