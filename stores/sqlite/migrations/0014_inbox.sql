-- The messages that consumers have received, each recorded in the transaction of what was done with it. Compared byte by byte.
CREATE TABLE {inbox} (
    consumer    TEXT NOT NULL,
    message_id  TEXT NOT NULL,
    received_at INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000),
    PRIMARY KEY (consumer, message_id)
) STRICT, WITHOUT ROWID;

-- The oldest messages of a consumer, which are purged first.
CREATE INDEX {inbox_age} ON {inbox} (consumer, received_at);
