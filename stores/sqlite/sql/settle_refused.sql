-- The rows among these, `[seq, event_id]` each, that are not pending with so many attempts and replays, and for that handler, or another node's. The
-- transaction holds the write lock, so it stays that way.
SELECT wanted.value ->> 0 FROM json_each(?2) AS wanted
WHERE NOT EXISTS (
    SELECT 1 FROM {event} WHERE seq = wanted.value ->> 0 AND +event_id = wanted.value ->> 1 AND handler IS ?4
        AND status IN (0, 2) AND attempts = ?3 AND replays = ?5 AND {mine}
)
