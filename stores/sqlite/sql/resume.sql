DELETE FROM {pause} WHERE kind = ?1 AND name = ?2
