-- Frees the orphans that still name the holders they were found with: a late release by a dead node may have freed one since,
-- and a living node may have claimed it.
UPDATE {event} FORCE INDEX (PRIMARY) SET `locked_by` = IF(`locked_by` LIKE '%!', '!', '?')
WHERE `seq` IN ({seqs}) AND `status` IN (0, 2) AND `locked_by` IN ({holders})
