-- The failed attempts of a row with one more, the last ten; without what is no such list.
JSON_ARRAY_APPEND(
    CASE WHEN JSON_VALID(`failures`) THEN
        CASE WHEN JSON_TYPE(`failures`) <> 'ARRAY' THEN '[]'
            WHEN JSON_LENGTH(`failures`) < 10 THEN `failures` ELSE JSON_REMOVE(`failures`, '$[0]') END
        ELSE '[]' END,
    '$', JSON_OBJECT('attempts', {attempts}, 'at', TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
        'node', {failed_by}, 'error', LEFT({error}, 500)))
