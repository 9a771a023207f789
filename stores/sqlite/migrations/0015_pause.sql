-- The event types and handlers of which no call begins, compared byte by byte.
CREATE TABLE {pause} (
    kind         TEXT NOT NULL CHECK (kind IN ('type', 'handler')),
    name         TEXT NOT NULL,
    paused_at    INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000),
    paused_until INTEGER,
    paused_by    TEXT,
    reason       TEXT,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
