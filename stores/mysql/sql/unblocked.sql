-- Added to the two: rows for which there is none.
 AND {head}.`seq` IS NULL
