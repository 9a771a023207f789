-- What operators have done: an entry is written before each change of theirs, and what became of it after it.
CREATE TABLE {audit} (
    "id"       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    "began_at" TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    "who"      VARCHAR(100) NOT NULL,
    "action"   VARCHAR(64) NOT NULL,
    "subject"  VARCHAR(2000) NOT NULL,
    "changed"  BIGINT,
    "outcome"  VARCHAR(500)
);
-- What a node has done since it joined, as of its last renewal: a JSON object. NULL for releases that record none.
ALTER TABLE {node} ADD COLUMN IF NOT EXISTS "figures" VARCHAR(255);
