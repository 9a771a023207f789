-- ?1 entry, ?2 rows changed, ?3 outcome.
UPDATE {audit} SET changed = ?2, outcome = ?3 WHERE id = ?1
