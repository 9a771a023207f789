-- The end of its lease as it was seen: a renewal has changed it.
DELETE FROM {node} WHERE `node_id` = {id} AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `expires_at`) = {expires_at}
