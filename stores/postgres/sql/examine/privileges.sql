-- The privileges that a node needs; see docs/relay.md. By the catalog, since a look-up by name fails where the schema may not be used.
SELECT t."relname" AS "table", string_agg(p."privilege", ', ' ORDER BY p."place") AS "lacks", current_user::text AS "user",
    has_schema_privilege(t."relnamespace", 'USAGE') AS "reaches", n."nspname" AS "schema"
FROM (VALUES {tables}) AS w ("name", "privileges")
JOIN pg_class t ON t."relname" = w."name"
JOIN pg_namespace n ON n."oid" = t."relnamespace"
CROSS JOIN LATERAL unnest(w."privileges"::text[]) WITH ORDINALITY AS p ("privilege", "place")
WHERE CASE WHEN {schema} IS NULL THEN pg_table_is_visible(t."oid") ELSE n."nspname" = {schema} END
  AND NOT has_table_privilege(t."oid", p."privilege")
GROUP BY 1, 3, 4, 5
UNION ALL
SELECT '', '', current_user, false, n."nspname" FROM pg_namespace n
WHERE n."nspname" = {schema} AND NOT has_schema_privilege(n."oid", 'USAGE')
