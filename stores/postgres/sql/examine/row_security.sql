SELECT row_security_active('{event}'::regclass) AS "hides_rows", current_user::text AS "user"
