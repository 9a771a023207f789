-- A cancelled row is DONE, and counts by itself, as state 4.
SELECT CASE WHEN "status" = 1 AND "last_error" = {cancelled} THEN 4 ELSE "status" END::smallint, count(*) FROM {event} GROUP BY 1
