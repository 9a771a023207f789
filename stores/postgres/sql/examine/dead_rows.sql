SELECT coalesce(s."n_dead_tup", 0), coalesce(s."n_live_tup", 0),
    extract(epoch FROM clock_timestamp() - greatest(s."last_autovacuum", s."last_vacuum"))::bigint
FROM pg_stat_all_tables s WHERE s."relid" = to_regclass('{event}')
