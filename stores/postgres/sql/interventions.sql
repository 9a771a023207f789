-- The number of interventions by operators, and the pauses: a row for each pause, or one without any.
SELECT p."interventions", s."kind", s."name", s."paused_at", s."paused_until", s."paused_by", s."reason"
FROM {partition} p LEFT JOIN {pause} s ON s."paused_until" IS NULL OR s."paused_until" > now()
WHERE p."partition" = 0
ORDER BY s."kind" COLLATE "C" DESC, s."name"
