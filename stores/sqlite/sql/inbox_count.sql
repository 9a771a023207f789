SELECT count(*) FROM (SELECT 1 FROM {inbox} INDEXED BY {inbox_age} WHERE consumer = ?1 LIMIT ?2)
