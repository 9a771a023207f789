-- Ordered by the column of the table: its text has the same name, and another order.
SELECT event."seq"::text FROM {event} AS event ORDER BY event."seq" DESC LIMIT $1::bigint
