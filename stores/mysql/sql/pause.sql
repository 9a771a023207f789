-- A type or handler that is paused already keeps its time of pause.
INSERT INTO {pause} (`kind`, `name`, `paused_at`, `paused_until`, `paused_by`, `reason`)
VALUES ({kind}, {name}, UTC_TIMESTAMP(6), TIMESTAMPADD(MICROSECOND, {length}, UTC_TIMESTAMP(6)), {by}, {reason})
ON DUPLICATE KEY UPDATE `paused_until` = TIMESTAMPADD(MICROSECOND, {length}, UTC_TIMESTAMP(6)), `paused_by` = {by}, `reason` = {reason}
