SELECT COUNT(*) FROM (SELECT 1 FROM {inbox} WHERE `consumer` = {consumer} LIMIT {most}) `counted`
