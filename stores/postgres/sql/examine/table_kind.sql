SELECT "relpersistence" = 'u' AS "unlogged" FROM pg_class WHERE "oid" = to_regclass('{event}')
