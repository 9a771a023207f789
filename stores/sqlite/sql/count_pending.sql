SELECT (SELECT count(*) FROM {event} INDEXED BY {event_ready} WHERE {ready} AND {pending_matching})
    + (SELECT count(*) FROM {event} INDEXED BY {event_due} WHERE {timed} AND {pending_matching})
