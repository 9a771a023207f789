-- A cancelled row is DONE, and counts by itself, as state 4; state 5 are rows with an unknown status.
SELECT CASE WHEN "status" = 1 AND "last_error" = {cancelled} THEN 4 WHEN "status" IN (0, 1, 2, 3) THEN "status" ELSE 5 END::smallint, count(*) FROM {event} GROUP BY 1
