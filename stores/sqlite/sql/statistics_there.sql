SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat1')
