-- The rows a step of a purge looks at: their state, and whether they were created and have ended long enough ago.
SELECT `seq`, `status`,
    `created_at` <= TIMESTAMPADD(MICROSECOND, -{age}, UTC_TIMESTAMP(6)),
    COALESCE(`done_at` <= TIMESTAMPADD(MICROSECOND, -{age}, UTC_TIMESTAMP(6)), 0)
FROM {event} FORCE INDEX (PRIMARY) WHERE `seq` > {above} ORDER BY `seq` LIMIT {limit}
