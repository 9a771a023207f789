-- In the user's transaction. It changes no row if the message is there, and waits for an open transaction that has recorded it.
INSERT INTO {inbox} ("consumer", "message_id") VALUES ($1::text, $2::text) ON CONFLICT DO NOTHING
