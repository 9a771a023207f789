-- The origin of the setting, if it is on: the role, the database, the file of the server, the client.
SELECT "source" FROM pg_catalog.pg_settings WHERE "name" = 'default_transaction_read_only' AND "setting" = 'on'
