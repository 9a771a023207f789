SELECT "seq", "event_id", "handler" FROM {event} WHERE "seq" = ANY ($1::bigint[])
