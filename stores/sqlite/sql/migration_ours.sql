-- True if the table of versions is there and has its columns.
SELECT count(*) = 2 FROM pragma_table_info(?1) WHERE name IN ('version', 'applied_at')
