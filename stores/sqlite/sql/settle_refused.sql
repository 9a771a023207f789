-- Which of these rows are not pending with so many attempts, or another node's. The transaction holds the write lock, so
-- it stays that way.
SELECT wanted.value FROM json_each(?2) AS wanted
WHERE NOT EXISTS (
    SELECT 1 FROM {event} WHERE seq = wanted.value AND status IN (0, 2) AND attempts = ?3 AND {mine}
)
