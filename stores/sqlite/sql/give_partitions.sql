-- Partitions that are not the node's own, or not under the epoch named, are left alone: the request may be late, and the node may
-- have come to own the partition anew.
UPDATE {partition} SET node_id = NULL
WHERE node_id = ?1
  AND (partition, epoch) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?2))
