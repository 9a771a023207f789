-- $1 above, $2 excluded seqs, $3 limit, $4 the share of the limit for rows with a due time where both kinds abound, $5 due and $6 ready
-- rows at most, and $7 of the rows that are set aside. The parts in braces are empty without a scope; see src/scope.rs. For the conditions
-- in the place of the comments, see src/types.rs.
-- Four branches in one round trip, at one moment: now() is the time of this statement, which is its own transaction.
-- The predicates of states are literals, as binds they would not match the partial indexes.
-- No limit of bytes: a running sum would copy every row. The client stops reading; see src/fetch.rs.
WITH due AS MATERIALIZED (
    SELECT * FROM {event} AS e
    WHERE {is_timed} AND "available_at" <= now()
      AND "seq" NOT IN (SELECT unnest($2::bigint[]))/* without_types */{and_of_these_partitions}{and_of_these_keys}{and_behind_no_head}
    ORDER BY "available_at", "seq"
    LIMIT $5::bigint
)
-- Ready rows leave room for due ones. The inner LIMIT is known to the planner, the outer one only at run time. First the rows that are
-- set aside, which are few, and the others after them: the client puts both into one order. Merged here, as a subquery, they would
-- cost the planner and each row more than the statement does.
(
    SELECT "seq", "event_id", "event_type", "aggregate_type", "aggregate_id", "tenant_id", "ordering_key",
        {payload}, {payload_bytes}, "content_type", {headers}, "attempts", "available_at", "occurred_at",
        "created_at", "status", "partition", "handler", "replays", "locked_by", "aside"
    FROM (
        SELECT * FROM {event} AS e
        WHERE {is_aside} AND "seq" > $1::bigint
          AND "seq" NOT IN (SELECT unnest($2::bigint[]))/* without_types */{and_of_these_partitions}{and_of_these_keys}{and_behind_no_head}
        ORDER BY "seq"
        LIMIT $7::bigint
    ) e
    LIMIT $3::bigint - (SELECT least(count(*), $4::bigint) FROM due)
)
UNION ALL
(
    SELECT "seq", "event_id", "event_type", "aggregate_type", "aggregate_id", "tenant_id", "ordering_key",
        {payload}, {payload_bytes}, "content_type", {headers}, "attempts", "available_at", "occurred_at",
        "created_at", "status", "partition", "handler", "replays", "locked_by", "aside"
    FROM (
        SELECT * FROM {event} AS e
        WHERE {is_plain} AND "seq" > greatest($1::bigint, {read_point})
          AND "seq" NOT IN (SELECT unnest($2::bigint[]))/* without_types */{and_of_these_partitions}{and_of_these_keys}{and_behind_no_head}
        ORDER BY "seq"
        LIMIT $6::bigint
    ) e
    LIMIT $3::bigint - (SELECT least(count(*), $4::bigint) FROM due)
)
UNION ALL
-- Due rows; the client drops the last ones where ready rows took more than the rest of the limit.
SELECT "seq", "event_id", "event_type", "aggregate_type", "aggregate_id", "tenant_id", "ordering_key",
    {payload}, {payload_bytes}, "content_type", {headers}, "attempts", "available_at", "occurred_at",
    "created_at", "status", "partition", "handler", "replays", "locked_by", "aside"
FROM due AS e
UNION ALL
-- The next row to become due, marked by its missing seq: its time, and the time now.
(
    SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "available_at", NULL, now(), NULL,
        NULL, NULL, NULL, NULL, NULL
    FROM {event}
    WHERE {is_timed} AND "available_at" > now()/* without_types */{and_of_these_partitions}
    ORDER BY "available_at", "seq"
    LIMIT 1
){and_interventions}
