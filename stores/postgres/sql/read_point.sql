-- The read point and its state. Its numbers are those of a table and of a file of its sequence; see migrations/0010_read_point.sql. If numbers come in no order, no point can be proven. Beside nodes of the release before, which put rows below the point that were delayed, it is checked often.
WITH numbers AS MATERIALIZED (SELECT {sequence} AS "sequence", 
    '{event}'::regclass::bigint << 32 | pg_relation_filenode({sequence})::bigint AS "numbers")
SELECT "read_point", "read_point_state", "interventions",
    coalesce("read_point_interventions" = "interventions", false) AS "heard_of_all",
    coalesce("read_point_sequence" = "sequence" AND "read_point_numbers" = "numbers", false) AS "is_of_these_numbers",
    coalesce("read_point_moved_at" BETWEEN now() - interval '200 milliseconds' AND now(), false) AS "was_moved_just_now",
    NOT coalesce("read_point_checked_at" BETWEEN now() - CASE WHEN to_regclass('{of_schema}{ready_index}') IS NULL
        THEN interval '1 hour' ELSE interval '15 seconds' END AND now(), false) AS "is_to_be_checked",
    "sequence", "numbers",
    {numbers_are_in_order} AS "numbers_are_in_order"
FROM {partition} CROSS JOIN numbers WHERE "partition" = 0
