-- The number of interventions by operators, and the pauses: a row for each pause, or one without any.
SELECT interventions, kind, name, paused_at, paused_until, paused_by, reason
FROM {partition} LEFT JOIN {pause} ON paused_until IS NULL OR paused_until > {now}
WHERE partition = 0
ORDER BY kind DESC, name
