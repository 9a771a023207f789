-- $1 tables: those whose rows have no place of their own in one heap, by which a claim finds them.
SELECT "name", c."relkind"::text AS "kind", coalesce(m."amname"::text, '') AS "method",
    EXISTS (SELECT FROM pg_inherits i WHERE i."inhparent" = c."oid") AS "has_parts"
FROM unnest($1::text[]) AS "name" JOIN pg_class c ON c."oid" = to_regclass("name") LEFT JOIN pg_am m ON m."oid" = c."relam"
WHERE c."relkind" <> 'r' OR m."amname" <> 'heap' OR EXISTS (SELECT FROM pg_inherits i WHERE i."inhparent" = c."oid")
