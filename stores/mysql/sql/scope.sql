-- Added to the three: rows of some partitions, and rows that no node has stamped with theirs; a partition that
-- does not exist is as good as none.
 AND (e.`partition` BETWEEN {first} AND {last} OR e.`partition` IS NULL OR e.`partition` NOT BETWEEN 0 AND 255)
