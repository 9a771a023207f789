-- The indexes by which rows are found: those that are missing, and those that were not built to their end.
WITH wanted ("name") AS (
    SELECT unnest(ARRAY['{event_pk}', '{event_id_key}', '{aside_index}', '{unique_index}', '{inbox_age_index}'])
    UNION ALL
    SELECT unnest(CASE WHEN (SELECT max("version") FROM {migration}) >= 20
        THEN ARRAY['{due_index}', '{dead_index}', '{head_index}']
        ELSE ARRAY['{new_due_index}', '{new_dead_index}', '{new_head_index}'] END)
)
SELECT w."name", i."indexrelid" IS NOT NULL AS "exists" FROM wanted w
LEFT JOIN (pg_index i JOIN pg_class c ON c."oid" = i."indexrelid" AND i."indrelid" IN (to_regclass('{event}'), to_regclass('{inbox}')))
    ON '"' || c."relname" || '"' = w."name"
WHERE i."indisvalid" IS NOT TRUE
