-- The rows from one `seq` on and below another.
SELECT {listed}
FROM {event} FORCE INDEX ({index})
WHERE `seq` < {below} AND `seq` >= {from}{of}{filter} ORDER BY `seq` DESC LIMIT {limit}
