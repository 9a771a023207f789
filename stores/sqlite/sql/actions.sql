-- ?1 below, ?2 limit.
SELECT id, began_at, who, action, subject, changed, outcome FROM {audit} WHERE id < ?1 ORDER BY id DESC LIMIT ?2
