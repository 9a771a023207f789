UPDATE {partition} SET node_id = NULL
WHERE partition IN (SELECT value FROM json_each(?2)) AND node_id = ?1
