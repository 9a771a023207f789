-- A lease that has ended goes on as long as nobody has evicted its node. Its end must not be before what the last confirmed renewal left, in microseconds since 2000.
UPDATE {node} SET `expires_at` = TIMESTAMPADD(MICROSECOND, {lease}, UTC_TIMESTAMP(6)), `lease` = {lease}{and_figures}
WHERE `node_id` = {id}{and_not_before}
