-- Statistics made while the table was nearly empty. The first number in `stat` is that of the rows.
DELETE FROM sqlite_stat1 WHERE tbl = ?1 COLLATE NOCASE AND CAST(stat AS INTEGER) < 1000
