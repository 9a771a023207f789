CREATE TABLE IF NOT EXISTS {migration} (
    version    INTEGER PRIMARY KEY,
    applied_at INTEGER NOT NULL
) STRICT;
