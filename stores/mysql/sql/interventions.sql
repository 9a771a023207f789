-- The number of times that operators have replayed, discarded or purged DEAD rows; and true if any row is RETRY or DEAD.
SELECT `interventions`, EXISTS (SELECT 1 FROM {event} FORCE INDEX (`pillarbox_heads`) WHERE `head` IS NOT NULL)
FROM {partition} WHERE `partition` = 0
