-- The channel is the table's own, by any name and search path that lead to it: an oid is one table's in its database.
SELECT 'pillarbox_' || '{event}'::regclass::oid
