-- The oldest messages of the consumer ?1, if they were received ?2 ago or before; at most ?3.
DELETE FROM {inbox}
WHERE (consumer, message_id) IN (
    SELECT consumer, message_id FROM {inbox} INDEXED BY {inbox_age}
    WHERE consumer = ?1 AND received_at <= {now} - ?2
    ORDER BY received_at LIMIT ?3
)
