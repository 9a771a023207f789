-- From the index alone, of every pending row.
SELECT
    (SELECT COUNT(*) FROM {partition} p LEFT JOIN {node} n ON n.`node_id` = p.`node_id` WHERE n.`node_id` IS NULL),
    COALESCE(SUM(c.`pending`), 0),
    COALESCE(MAX(CASE WHEN c.`partition` IS NOT NULL THEN c.`pending` END), 0)
FROM (SELECT `partition`, COUNT(*) AS `pending` FROM {event} FORCE INDEX (`pillarbox_queue`)
    WHERE `queue` IN (0, 1) GROUP BY `partition`) c
