SELECT current_setting('autovacuum') AS "autovacuum", current_setting('track_counts') AS "track_counts",
    coalesce((SELECT o."option_value" FROM pg_options_to_table(c."reloptions") o WHERE o."option_name" = 'autovacuum_enabled'), 'on') AS "table"
FROM pg_class c WHERE c."oid" = to_regclass('{event}')
