-- The pauses that have not ended.
SELECT 0, kind, name, paused_at, paused_until, paused_by, reason
FROM {pause} WHERE paused_until IS NULL OR paused_until > {now}
ORDER BY kind DESC, name
