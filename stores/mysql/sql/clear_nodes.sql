-- Partitions go on pointing to a node that was cleared away, until somebody takes them: whoever does learns by it that
-- the owner before did not leave.
DELETE FROM {node} WHERE `expires_at` <= UTC_TIMESTAMP(6)
