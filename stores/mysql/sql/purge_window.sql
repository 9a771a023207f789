-- The rows a step of a purge looks at: their state, and whether they were created and have ended long enough ago; one that
-- does not say when it ended counts from its creation. Then, whether a clock has stamped it ahead, and whether it is of the wanted key.
SELECT `seq`, `status`,
    `created_at` <= TIMESTAMPADD(MICROSECOND, -{age}, UTC_TIMESTAMP(6)),
    COALESCE(`done_at`, `created_at`) <= TIMESTAMPADD(MICROSECOND, -{age}, UTC_TIMESTAMP(6)),
    LEAST(`created_at`, COALESCE(`done_at`, `created_at`)) > TIMESTAMPADD(HOUR, 1, UTC_TIMESTAMP(6)),
    TRUE{of_key}
FROM {event} FORCE INDEX (PRIMARY) WHERE `seq` > {above} ORDER BY `seq` LIMIT {limit}
