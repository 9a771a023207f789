-- From the indexes alone, but for one row: rows were created in the order of `seq`, so the lowest has waited longest.
SELECT clock.now, ready.rows, due.rows, delayed.rows, dead.rows, due.since,
       (SELECT created_at FROM {event} INDEXED BY {event_ready}
        WHERE {ready} ORDER BY seq LIMIT 1)
FROM (SELECT {now} AS now) AS clock,
     (SELECT count(*) AS rows FROM {event} INDEXED BY {event_ready}
      WHERE {ready}) AS ready,
     (SELECT count(*) AS rows, min(available_at) AS since FROM {event} INDEXED BY {event_due}
      WHERE {timed} AND available_at <= {now}) AS due,
     (SELECT count(*) AS rows FROM {event} INDEXED BY {event_due}
      WHERE {timed} AND available_at > {now}) AS delayed,
     (SELECT count(*) AS rows FROM {event} INDEXED BY {event_dead} WHERE status = 3) AS dead
