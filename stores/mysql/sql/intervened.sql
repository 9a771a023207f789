-- The number of interventions by operators, and the pauses: a row for each pause, or one without any.
SELECT p.`interventions`, s.`kind`, s.`name`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `paused_at`),
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `paused_until`), s.`paused_by`, s.`reason`
FROM {partition} p LEFT JOIN {pause} s ON s.`paused_until` IS NULL OR s.`paused_until` > UTC_TIMESTAMP(6)
WHERE p.`partition` = 0
ORDER BY s.`kind` DESC, s.`name`
