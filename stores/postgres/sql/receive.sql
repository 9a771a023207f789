-- In the user's transaction. It changes no row if the message is there, and waits for whoever has recorded it and is open.
INSERT INTO {inbox} ("consumer", "message_id") VALUES ($1::text, $2::text) ON CONFLICT DO NOTHING
