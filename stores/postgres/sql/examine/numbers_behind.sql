WITH named AS MATERIALIZED (
    SELECT {sequence} AS "sequence"
)
SELECT "sequence"::regclass::text AS "name", {last_number} AS "last",
    coalesce((SELECT "seq" FROM {event} ORDER BY "seq" DESC LIMIT 1), 0) AS "highest"
FROM named
