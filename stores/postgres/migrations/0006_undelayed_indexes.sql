-- A NEW row whose due time is not after its creation is not delayed: it stands among those without a due time.
CREATE INDEX {new_ready_index} ON {event} ("seq")
    WHERE "status" IN (0, 2) AND ("available_at" IS NULL OR "status" = 0 AND "available_at" <= "created_at");
CREATE INDEX {new_due_index} ON {event} ("available_at", "seq")
    WHERE "status" IN (0, 2) AND "available_at" IS NOT NULL AND ("status" = 2 OR "available_at" > "created_at");
