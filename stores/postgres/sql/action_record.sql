-- $1 who, $2 action, $3 subject.
INSERT INTO {audit} ("who", "action", "subject") VALUES ($1::text, $2::text, $3::text) RETURNING "id"
