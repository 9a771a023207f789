-- As complete, of a row that is not kept. Only a DELETE of several tables may give one a second name on every server.
DELETE e FROM {event} e FORCE INDEX (PRIMARY)
WHERE e.`seq` = ? AND e.`event_id` = ? AND e.`handler` <=> ? AND e.`status` IN (0, 2)
    AND GREATEST(e.`attempts`, 0) = ? AND e.`replays` = ?
    AND EXISTS (SELECT 1 FROM {node} n FORCE INDEX (`pillarbox_fence`) WHERE n.`node_id` = ?){and_is_its_own}
