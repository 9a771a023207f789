-- An event may have several handlers, each with a row of its own: what is unique is the event for a handler, and an event
-- without a handler is one row, as before. SQLite cannot drop a UNIQUE of a column, so the rows move to a new table, which
-- goes on with the numbers of the old one. Views that read the table stay as they are; triggers on it have to be made anew.
CREATE TABLE {event_new} (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id       TEXT NOT NULL,
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

INSERT INTO {event_new} (
    seq, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, partition, handler, payload, payload_bytes,
    content_type, headers, status, attempts, available_at, occurred_at, created_at, done_at, last_error, locked_by)
SELECT
    seq, event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, partition, handler, payload, payload_bytes,
    content_type, headers, status, attempts, available_at, occurred_at, created_at, done_at, last_error, locked_by
FROM {event};
DELETE FROM sqlite_sequence WHERE name = trim('{event_new}', '"');
INSERT INTO sqlite_sequence (name, seq)
    SELECT trim('{event_new}', '"'), seq FROM sqlite_sequence WHERE name = trim('{event}', '"');
DROP TABLE {event};
-- Or the new name would have to be known to the views already.
PRAGMA legacy_alter_table = ON;
ALTER TABLE {event_new} RENAME TO {event};
PRAGMA legacy_alter_table = OFF;

CREATE UNIQUE INDEX {event_once} ON {event} (event_id, coalesce(handler, ''));
-- Pending rows only, so that reading them costs the same whatever has been delivered before.
CREATE INDEX {event_ready} ON {event} (seq) WHERE status IN (0, 2) AND available_at IS NULL;
CREATE INDEX {event_due} ON {event} (available_at, seq) WHERE status IN (0, 2) AND available_at IS NOT NULL;
-- Dead rows, which are few, so that counting and listing them needs no look at the others.
CREATE INDEX {event_dead} ON {event} (seq) WHERE status = 3;
