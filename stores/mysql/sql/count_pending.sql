SELECT COUNT(*) FROM {event} FORCE INDEX (`pillarbox_queue`) WHERE `queue` IN (0, 1){filter}
