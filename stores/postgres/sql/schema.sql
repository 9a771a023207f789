-- $1 table. The schema in which a name of the search path finds it, or in which it would be created.
SELECT coalesce((SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1::text)),
    current_schema(), '')::text
