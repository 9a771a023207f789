-- One row that is DONE, in the transaction of its handler, after complete_fence.sql: the position if it keeps one, seq, event id, handler, expected attempts and replays, node,
-- and once or twice more the node, by the basis of its right to the row.
UPDATE {event} e FORCE INDEX (PRIMARY)
SET e.`status` = 1, e.`done_at` = UTC_TIMESTAMP(6), e.`last_error` = NULL, e.`locked_by` = NULL, e.`room` = NULL{and_position}
WHERE e.`seq` = ? AND e.`event_id` = ? AND e.`handler` <=> ? AND e.`status` IN (0, 2)
    AND GREATEST(e.`attempts`, 0) = ? AND e.`replays` = ?
    AND EXISTS (SELECT 1 FROM {node} n FORCE INDEX (`pillarbox_fence`) WHERE n.`node_id` = ?){and_is_its_own}
