-- The channel is the table's own, whatever name and search path lead to it: an oid is one table's in its database.
SELECT 'pillarbox_' || '{event}'::regclass::oid
