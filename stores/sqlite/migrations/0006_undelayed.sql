-- A NEW row whose due time is not after its creation is not delayed: it stands among those without a due time.
DROP INDEX {event_ready};
DROP INDEX {event_due};
CREATE INDEX {event_ready} ON {event} (seq)
    WHERE status IN (0, 2) AND (available_at IS NULL OR status = 0 AND available_at <= created_at);
CREATE INDEX {event_due} ON {event} (available_at, seq)
    WHERE status IN (0, 2) AND available_at IS NOT NULL AND (status = 2 OR available_at > created_at);
