SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = $1::text
  AND CASE WHEN $2::text IS NULL THEN n.nspname = ANY (current_schemas(true)) ELSE n.nspname = $2::text END
