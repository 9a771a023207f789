-- In the user's transaction. It changes no row if the message is there.
INSERT INTO {inbox} (consumer, message_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING
