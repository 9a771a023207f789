-- The rows a step of a purge looks at: their state, and flags: created long enough ago, ended long enough ago (a row without an
-- end counts from its creation), stamped ahead by a clock, of the wanted key.
SELECT `seq`, `status`,
    `created_at` <= TIMESTAMPADD(MICROSECOND, -{age}, UTC_TIMESTAMP(6)),
    COALESCE(`done_at`, `created_at`) <= TIMESTAMPADD(MICROSECOND, -{age}, UTC_TIMESTAMP(6)),
    LEAST(`created_at`, COALESCE(`done_at`, `created_at`)) > TIMESTAMPADD(HOUR, 1, UTC_TIMESTAMP(6)),
    TRUE{of_key}
FROM {event} FORCE INDEX (PRIMARY) WHERE `seq` > {above} ORDER BY `seq` LIMIT {limit}
