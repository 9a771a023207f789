-- The pauses that have not ended.
SELECT 0, `kind`, `name`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `paused_at`), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `paused_until`), `paused_by`, `reason`
FROM {pause} WHERE `paused_until` IS NULL OR `paused_until` > UTC_TIMESTAMP(6)
ORDER BY `kind` DESC, `name`
