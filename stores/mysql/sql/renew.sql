UPDATE {node} SET `expires_at` = TIMESTAMPADD(MICROSECOND, {lease}, UTC_TIMESTAMP(6))
WHERE `node_id` = {id} AND `expires_at` > UTC_TIMESTAMP(6)
