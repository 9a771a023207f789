-- From the index alone, but for the creation of the oldest ready row; rows are created in the order of seq.
SELECT
    (SELECT COUNT(*) FROM {event} FORCE INDEX (`pillarbox_queue`) WHERE `queue` = 0),
    (SELECT COUNT(*) FROM {event} FORCE INDEX (`pillarbox_queue`) WHERE `queue` = 1 AND `due_at` <= UTC_TIMESTAMP(6)),
    (SELECT COUNT(*) FROM {event} FORCE INDEX (`pillarbox_queue`) WHERE `queue` = 1 AND `due_at` > UTC_TIMESTAMP(6)),
    (SELECT COUNT(*) FROM {event} FORCE INDEX (`pillarbox_queue`) WHERE `queue` = 3),
    (SELECT TIMESTAMPDIFF(MICROSECOND, `created_at`, UTC_TIMESTAMP(6)) FROM {event} FORCE INDEX (`pillarbox_queue`)
        WHERE `queue` = 0 AND `due_at` IS NULL ORDER BY `seq` LIMIT 1),
    (SELECT TIMESTAMPDIFF(MICROSECOND, `due_at`, UTC_TIMESTAMP(6)) FROM {event} FORCE INDEX (`pillarbox_queue`)
        WHERE `queue` = 1 AND `due_at` <= UTC_TIMESTAMP(6) ORDER BY `due_at` LIMIT 1)
