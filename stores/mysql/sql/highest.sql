SELECT COALESCE(MAX(`seq`), 0) FROM {event}
