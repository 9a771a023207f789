-- The number that the insert before gave to its row, or the answer that it left instead.
SELECT CAST(LAST_INSERT_ID() AS SIGNED)
