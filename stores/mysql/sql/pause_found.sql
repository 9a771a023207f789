-- The number of pauses, and whether there is this one.
SELECT COUNT(*), COALESCE(SUM(`kind` = {kind} AND `name` = {name}), 0) FROM {pause}
