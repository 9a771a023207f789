-- The rows of a settle that may still be changed, locked, in the order of the primary key as in every other settle.
SELECT `seq`, GREATEST(`attempts`, 0) FROM {event} FORCE INDEX (PRIMARY)
WHERE `seq` IN ({seqs}) AND `status` IN (0, 2){held} ORDER BY `seq` FOR UPDATE
