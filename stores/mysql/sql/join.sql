-- The same node may join again: its first attempt may have been committed without an answer.
INSERT INTO {node} (`node_id`, `mode`, `started_at`, `expires_at`, `lease`)
VALUES ({id}, {mode}, UTC_TIMESTAMP(6), TIMESTAMPADD(MICROSECOND, {lease}, UTC_TIMESTAMP(6)), {lease})
ON DUPLICATE KEY UPDATE `mode` = {mode}, `expires_at` = TIMESTAMPADD(MICROSECOND, {lease}, UTC_TIMESTAMP(6)), `lease` = {lease}
