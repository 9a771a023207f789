-- The objects with these names. SQLite keeps tables, views and indexes in one set of names, and does not tell upper from
-- lower case.
SELECT type, name FROM sqlite_schema
WHERE lower(name) IN (SELECT lower(value) FROM json_each(?1))
ORDER BY type DESC, name
LIMIT 1
