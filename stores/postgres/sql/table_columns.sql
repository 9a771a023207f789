-- The columns of the object of this name: type without its length, and flags: an INSERT has to name it, it is unique,
-- it may be NULL. An object that is no table has none of them.
SELECT a.attname, format_type(a.atttypid, NULL),
    a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS "required",
    EXISTS (SELECT FROM pg_index i
        WHERE i.indrelid = c.oid AND i.indisunique AND i.indpred IS NULL
          AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum) AS "unique",
    NOT a.attnotnull AS "nullable"
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind = 'r'
WHERE c.relname = $1::text
  AND CASE WHEN $2::text IS NULL THEN pg_table_is_visible(c.oid) ELSE n.nspname = $2::text END
