SELECT "status", count(*) FROM {event} GROUP BY "status"
