SELECT pg_notify('pillarbox_' || '{event}'::regclass::oid, '')
