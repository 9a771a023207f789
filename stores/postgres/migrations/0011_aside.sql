-- The state of a row that does not just wait for its first attempt in the place of its seq: one that is delayed (0) or was replayed
-- (0), that failed (2), that is DEAD (3). NULL for all others, before their delivery and after it: no index names what the delivery
-- of such a row changes, so its new version lands beside the old one and no index hears of it.
-- With half of each page free, a few of the new versions found no room on it.
ALTER TABLE {event} SET (fillfactor = 45);
ALTER TABLE {event} ADD COLUMN "aside" SMALLINT GENERATED ALWAYS AS (
    CASE
        WHEN "status" IN (2, 3) THEN "status"
        WHEN "status" = 0 AND ("available_at" <> "created_at" OR "replays" > 0) THEN 0::smallint
    END
) STORED;
