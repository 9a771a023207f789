-- What is known of the read point; see migrations/0010_read_point.sql. Numbers that sessions take in advance come in no order, so with
-- them no point can be proven.
SELECT CASE WHEN "read_point_sequence" = {sequence} AND "read_point_numbers" = {numbers} THEN "read_point" END AS "point", "read_point_proof", "interventions",
    coalesce("read_point_moved_at" BETWEEN now() - interval '500 milliseconds' AND now(), false) AS "was_moved_just_now",
    coalesce("read_point_interventions" = "interventions"
        AND "read_point_checked_at" BETWEEN now() - interval '1 hour' AND now(), false) AS "is_known",
    coalesce((SELECT "seqcache" = 1 FROM pg_sequence WHERE "seqrelid" = {sequence}), false) AS "numbers_are_in_order",
    (SELECT "seq" FROM {event} ORDER BY "seq" LIMIT 1) AS "lowest"
FROM {partition} WHERE "partition" = 0
