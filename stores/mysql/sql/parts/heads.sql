-- Added to fetch_ready.sql and fetch_due.sql: looks for an earlier row of the same key and handler that is in a state. As an outer join
-- it costs half as much as NOT EXISTS, and is nothing that an optimizer could turn around: it looks once for each row that
-- is read, in the index of heads alone, and stops at the first that is there.
LEFT JOIN {event} {head} FORCE INDEX (`pillarbox_heads`)
    ON {head}.`head` = {key} AND {head}.`handler` <=> e.`handler` AND {head}.`failing` = {status} AND {head}.`seq` < e.`seq`
