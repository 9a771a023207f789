SELECT COUNT(*) FROM {event} FORCE INDEX (`pillarbox_queue`) WHERE `queue` = 3{filter}
