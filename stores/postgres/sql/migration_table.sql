CREATE TABLE IF NOT EXISTS {migration} (
    "version"    INT PRIMARY KEY,
    "applied_at" TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
