INSERT INTO {event} (
    `event_id`, `event_type`, `aggregate_type`, `aggregate_id`, `tenant_id`, `ordering_key`, `partition`,
    `payload`, `payload_bytes`, `content_type`, `headers`, `available_at`, `occurred_at`, `locked_by`, `handler`, `unique_key`)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    COALESCE(TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00'), TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6))),
    TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00'), ?, ?, CAST(CONVERT(? USING utf8mb4) AS BINARY))
-- A row that has the key stays as it is, and is locked; inserted_unique.sql asks for its place and if it has ended, since the
-- transaction may have an older view of it. Zero if the event's id is taken.
ON DUPLICATE KEY UPDATE `seq` = `seq` + 0 * LAST_INSERT_ID(
    IF(`unique_key` <=> VALUES(`unique_key`), IF(`status` IN (0, 2), -`seq`, `seq` - {ended}), 0))
