-- $1 table, $2 name. The index of the table with this name: true if it was built to its end, and its name with the schema.
SELECT i.indisvalid, format('%I.%I', n.nspname, c.relname)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE i.indrelid = to_regclass($1::text) AND c.relname = $2::text
