SELECT `status`, COUNT(*) FROM {event} GROUP BY `status`
