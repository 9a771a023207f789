SELECT count(*) FROM {event} INDEXED BY {event_dead} WHERE status = 3 AND {matching}
