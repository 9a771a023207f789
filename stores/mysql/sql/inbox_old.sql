-- The oldest messages of a consumer, but for those that a user's transaction holds.
SELECT `message_id` FROM {inbox} FORCE INDEX (`pillarbox_inbox_age`)
WHERE `consumer` = {consumer} AND `received_at` <= TIMESTAMPADD(MICROSECOND, -{age}, UTC_TIMESTAMP(6))
ORDER BY `received_at` LIMIT {limit} FOR UPDATE SKIP LOCKED
