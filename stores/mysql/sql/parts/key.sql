-- The key by which a row is ordered, as the column `head` has it: to the byte. NULL for a row without a key, which is like no other.
CAST(COALESCE(e.`ordering_key`, e.`aggregate_id`) AS BINARY)
