-- The number of pauses, and true if this one is among them.
SELECT COUNT(*), COALESCE(SUM(`kind` = {kind} AND `name` = {name}), 0) FROM {pause}
