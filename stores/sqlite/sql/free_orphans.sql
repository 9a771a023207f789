-- A row whose time has not come is held by nobody, since only due rows are taken.
UPDATE {event} SET locked_by = CASE substr(locked_by, -1) WHEN '!' THEN '!' ELSE '?' END
WHERE seq IN (
    SELECT seq FROM {event} INDEXED BY {event_ready}
    WHERE {ready} AND {orphan}
    UNION ALL
    SELECT seq FROM {event} INDEXED BY {event_due}
    WHERE {timed} AND available_at <= {now} AND {orphan}
)
