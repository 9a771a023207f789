SELECT "seq" FROM {event} ORDER BY "seq" LIMIT 1
