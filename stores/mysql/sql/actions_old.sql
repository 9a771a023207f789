-- The oldest entries, as far as they are old enough.
SELECT `id` FROM (SELECT `id`, `began_at` FROM {audit} ORDER BY `id` LIMIT {limit}) AS `oldest`
WHERE `began_at` <= TIMESTAMPADD(MICROSECOND, -{age}, UTC_TIMESTAMP(6))
