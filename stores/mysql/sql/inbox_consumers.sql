-- A page of the consumers, and the time since the oldest message of each. The server goes from one to the next in the index.
SELECT `consumer`, TIMESTAMPDIFF(MICROSECOND, MIN(`received_at`), UTC_TIMESTAMP(6))
FROM {inbox} FORCE INDEX (`pillarbox_inbox_age`) WHERE `consumer` > {after} GROUP BY `consumer` ORDER BY `consumer` LIMIT {limit}
