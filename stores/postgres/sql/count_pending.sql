-- $1 event type, $2 aggregate type, $3 tenant, $4 handler, $5 key, $6 state, each NULL for any.
SELECT (SELECT count(*) FROM {ready} AS e WHERE {pending_matching})
    + (SELECT count(*) FROM {event} WHERE {is_timed} AND {pending_matching})
