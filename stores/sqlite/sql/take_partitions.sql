UPDATE {partition} SET node_id = ?1, epoch = epoch + 1
WHERE partition IN (SELECT value FROM json_each(?2))
