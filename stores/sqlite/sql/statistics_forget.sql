-- Statistics made while the table was nearly empty. What stands first in `stat` is the number of rows.
DELETE FROM sqlite_stat1 WHERE tbl = ?1 COLLATE NOCASE AND CAST(stat AS INTEGER) < 1000
