-- The event types and handlers of which no call begins, compared byte by byte.
CREATE TABLE {pause} (
    "kind"         VARCHAR(16) NOT NULL CHECK ("kind" IN ('type', 'handler')),
    "name"         VARCHAR(128) COLLATE "C" NOT NULL,
    "paused_at"    TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    "paused_until" TIMESTAMPTZ,
    "paused_by"    VARCHAR(255),
    "reason"       VARCHAR(1000),
    PRIMARY KEY ("kind", "name")
);
