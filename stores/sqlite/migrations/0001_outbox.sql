-- Events. Times are microseconds since 1970 in UTC; SQLite's clock gives whole milliseconds.
-- A plain INSERT (event_id, event_type, payload) from any language is a valid event.
-- STRICT (SQLite 3.37) refuses a value of another type where it is written, not where it is delivered.
CREATE TABLE {event} (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id       TEXT NOT NULL UNIQUE,
    event_type     TEXT NOT NULL,
    aggregate_type TEXT DEFAULT '__GLOBAL__',
    aggregate_id   TEXT,
    tenant_id      TEXT,
    ordering_key   TEXT,
    partition      INTEGER,
    handler        TEXT,
    payload        TEXT,
    payload_bytes  BLOB,
    content_type   TEXT,
    headers        TEXT,
    status         INTEGER NOT NULL DEFAULT 0 CHECK (status BETWEEN 0 AND 3),
    attempts       INTEGER NOT NULL DEFAULT 0 CHECK (attempts BETWEEN 0 AND 4294967295),
    available_at   INTEGER,
    occurred_at    INTEGER,
    created_at     INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000),
    done_at        INTEGER,
    last_error     TEXT,
    locked_by      TEXT
) STRICT;

-- Pending rows only, so that reading them costs the same whatever has been delivered before.
CREATE INDEX {event_ready} ON {event} (seq) WHERE status IN (0, 2) AND available_at IS NULL;
CREATE INDEX {event_due} ON {event} (available_at, seq) WHERE status IN (0, 2) AND available_at IS NOT NULL;
-- Dead rows, which are few, so that counting and listing them needs no look at the others.
CREATE INDEX {event_dead} ON {event} (seq) WHERE status = 3;

CREATE TABLE {node} (
    node_id    TEXT NOT NULL PRIMARY KEY,
    mode       TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

CREATE TABLE {partition} (
    partition INTEGER PRIMARY KEY,
    node_id   TEXT,
    epoch     INTEGER NOT NULL DEFAULT 0
) STRICT;

WITH RECURSIVE numbers (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number < 255)
INSERT INTO {partition} (partition) SELECT number FROM numbers;
