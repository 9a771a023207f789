-- The messages that consumers have received, each recorded in the transaction of what was done with it. Compared byte by byte.
CREATE TABLE {inbox} (
    "consumer"    VARCHAR(64) COLLATE "C" NOT NULL,
    "message_id"  VARCHAR(255) COLLATE "C" NOT NULL,
    "received_at" TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY ("consumer", "message_id")
);
-- The oldest messages of a consumer, which are purged first.
CREATE INDEX {inbox_age_index} ON {inbox} ("consumer", "received_at");
