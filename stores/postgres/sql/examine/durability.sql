-- The setting of a user or a database holds for the sessions of services, of which this is one by its own user alone.
SELECT current_setting('fsync') AS "fsync", current_setting('full_page_writes') AS "full_page_writes",
    current_setting('synchronous_commit') AS "synchronous_commit",
    coalesce((SELECT string_agg(coalesce(r."rolname", 'any user'), ', ') FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r."oid" = s."setrole"
        WHERE s."setdatabase" IN (0, (SELECT "oid" FROM pg_database WHERE "datname" = current_database()))
          AND 'synchronous_commit=off' = ANY (s."setconfig")), '') AS "users"
