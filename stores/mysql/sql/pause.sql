-- What is paused already keeps the time since which it is.
INSERT INTO {pause} (`kind`, `name`, `paused_at`, `paused_until`, `paused_by`, `reason`)
VALUES ({kind}, {name}, UTC_TIMESTAMP(6), TIMESTAMPADD(MICROSECOND, {length}, UTC_TIMESTAMP(6)), {by}, {reason})
ON DUPLICATE KEY UPDATE `paused_until` = TIMESTAMPADD(MICROSECOND, {length}, UTC_TIMESTAMP(6)), `paused_by` = {by}, `reason` = {reason}
