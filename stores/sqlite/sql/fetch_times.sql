-- Now, the earliest due time, and the next one that lies ahead.
SELECT clock.now,
       (SELECT min(available_at) FROM {event} INDEXED BY {event_due}
        WHERE {timed}),
       (SELECT min(available_at) FROM {event} INDEXED BY {event_due}
        WHERE {timed} AND available_at > clock.now
          AND seq NOT IN (SELECT value FROM json_each(?2)) AND {free}/* without_types */)
FROM (SELECT {now} AS now) AS clock
