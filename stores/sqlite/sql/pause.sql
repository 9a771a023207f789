-- ?1 kind, ?2 name, ?3 microseconds until it ends or NULL, ?4 author, ?5 reason. A type or handler that is paused already keeps its time of pause.
INSERT INTO {pause} (kind, name, paused_at, paused_until, paused_by, reason) VALUES (?1, ?2, {now}, {now} + ?3, ?4, ?5)
ON CONFLICT (kind, name) DO UPDATE SET
    paused_until = excluded.paused_until, paused_by = excluded.paused_by, reason = excluded.reason
