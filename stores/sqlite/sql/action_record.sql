-- ?1 who, ?2 action, ?3 subject.
INSERT INTO {audit} (who, action, subject) VALUES (?1, ?2, ?3) RETURNING id
