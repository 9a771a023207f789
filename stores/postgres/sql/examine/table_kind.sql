SELECT c."relpersistence" = 'u' AS "unlogged", coalesce((SELECT q."seqcache" FROM pg_sequence q WHERE q."seqrelid" = {sequence}), 1) AS "cache"
FROM pg_class c WHERE c."oid" = to_regclass('{event}')
