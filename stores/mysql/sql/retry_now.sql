-- A due time, so that reading finds the row wherever it has got to. One that has failed and is due gets no later one: should the clock be set back
-- now, it would wait for a time again, and be overtaken where all events are delivered in order. A row that is held in its place gets another with each attempt.
UPDATE {event} FORCE INDEX (PRIMARY) SET `available_at` = CASE
    WHEN `status` = 2 AND `available_at` IS NULL THEN TIMESTAMPADD(MICROSECOND, GREATEST(`attempts`, 0), `created_at`)
    WHEN `status` = 2 THEN LEAST(`available_at`, UTC_TIMESTAMP(6))
    ELSE UTC_TIMESTAMP(6) END, `room` = NULL WHERE `seq` IN ({seqs})
