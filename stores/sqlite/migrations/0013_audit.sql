-- What operators have done: an entry is written before each change of theirs, and what became of it after it.
CREATE TABLE {audit} (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    began_at INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000),
    who      TEXT NOT NULL,
    action   TEXT NOT NULL,
    subject  TEXT NOT NULL,
    changed  INTEGER,
    outcome  TEXT
) STRICT;
-- What a node has done since it joined, as of its last renewal: a JSON object. NULL for releases that record none.
ALTER TABLE {node} ADD COLUMN figures TEXT;
