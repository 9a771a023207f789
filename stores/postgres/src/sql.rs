use std::sync::Arc;

use pillarbox_core::event::limits;
use pillarbox_core::ownership::Fence;
use pillarbox_core::store::{Blocked, CANCELLED, RowSet, TableName};

use crate::positions;
use crate::row;
use crate::rows::Alike;
use crate::scope::Fetches;

/// A statement that changes rows only if they are the node's, as each kind of fence sees it.
#[derive(Debug)]
pub(crate) struct Fenced {
    table: String,
    partition: String,
    row: String,
}

impl Fenced {
    pub(crate) fn of(&self, fence: Fence) -> &str {
        match fence {
            Fence::Table => &self.table,
            Fence::Partition => &self.partition,
            Fence::Row => &self.row,
        }
    }
}

/// A statement that changes rows which are [alike](Alike), as it finds them best.
#[derive(Debug)]
pub(crate) struct ByDensity {
    sparse: Fenced,
    dense: Fenced,
}

impl ByDensity {
    pub(crate) fn of(&self, rows: &Alike<'_>) -> &Fenced {
        if rows.are_dense() { &self.dense } else { &self.sparse }
    }

    #[cfg(test)]
    pub(crate) fn both(&self) -> [&Fenced; 2] {
        [&self.sparse, &self.dense]
    }
}

/// A statement by which an operator changes pending rows.
#[derive(Debug)]
pub(crate) struct Intervention {
    /// Passes over what somebody else is changing.
    pub(crate) free: String,
    /// Waits for it.
    pub(crate) any: String,
}

impl Intervention {
    fn new(text: &str, verb: impl Fn(&str) -> String) -> Self {
        Self {
            free: verb(&text.replace("{skip_locked}", " SKIP LOCKED")),
            any: verb(&text.replace("{skip_locked}", "")),
        }
    }
}

/// Statements that list events of any state, by the rows among which they look.
#[derive(Debug)]
pub(crate) struct Recent {
    all: Pages,
    of_event: Pages,
    pending: Pages,
    dead: Pages,
}

/// The statement that finds where a page has to stop, and the one that reads it.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) end: String,
    pub(crate) page: String,
}

impl Recent {
    fn new(verb: impl Fn(&str) -> String) -> Self {
        let among = |rows: &str, of: &str| {
            let file = |text: &str| verb(&text.replace("{rows}", rows).replace("{of}", of));
            Pages { end: file(include_str!("../sql/recent_end.sql")), page: file(include_str!("../sql/recent.sql")) }
        };
        let end_of_pending = verb(include_str!("../sql/recent_end_pending.sql"));
        Self {
            all: among("{event}", "TRUE"),
            of_event: among(ROWS_OF_EVENT, "TRUE"),
            pending: Pages { end: end_of_pending, ..among(PENDING_ROWS, "TRUE") },
            dead: among("{event}", r#""aside" = 3"#),
        }
    }

    pub(crate) fn among(&self, rows: RowSet) -> &Pages {
        match rows {
            RowSet::All => &self.all,
            RowSet::OfEvent => &self.of_event,
            RowSet::New | RowSet::Retry => &self.pending,
            RowSet::Dead => &self.dead,
        }
    }
}

/// The condition on `seq` for rows that lie scattered. The array is hidden in a sub-select: a planner that sees it estimates each of its
/// elements, for longer than the index needs to find some of the rows.
const ONE_BY_ONE: &str = r#""seq" = ANY ((SELECT $3::bigint[])::bigint[])"#;
/// The same for rows that lie beside each other: to go along the index costs a fifth of the statement less than to enter it for each row.
/// Rows between them are passed over, since [their event is not named](EVENT_IS_NAMED).
const IN_A_ROW: &str = r#""seq" BETWEEN ($3::bigint[])[1] AND ($3::bigint[])[cardinality($3::bigint[])]"#;

/// The condition on the node under [`Fence::Table`].
const OWNS_THE_TABLE: &str =
    "\n      AND EXISTS (SELECT FROM {partition} WHERE \"partition\" = 0 AND \"node_id\" = $1::text)";
/// The condition on the row under [`Fence::Partition`]. `IS TRUE` keeps it a look-up in the partitions that the node owns, read once;
/// as a join it could begin with the partitions.
const ITS_PARTITION_IS_OWNED: &str =
    "\n      AND (\"partition\" IN (SELECT p.\"partition\" FROM {partition} p WHERE p.\"node_id\" = $1::text)) IS TRUE";
/// The condition on the row under [`Fence::Row`].
const HOLDS_THE_ROW: &str = "\n      AND \"locked_by\" IN ($1::text, $1::text || '!')";

/// The event and the handler of a row in eight bytes: in an array of texts, an element is found by passing over all
/// that stand before it. The server makes it on both sides of every comparison, so it may be another on the next version.
const FINGERPRINT: &str =
    r#"hashtextextended(coalesce("handler", '') COLLATE "C", hashtextextended("event_id" COLLATE "C", 0))"#;

/// A row's event and handler, exactly, where the ids have one length and the handler is one: see
/// [`Alike`](crate::rows::Alike).
const EVENT_IS_NAMED: &str = r#"textsend("event_id") = substring($4::bytea, (width_bucket("seq", $3::bigint[]) - 1) * $5::int + 1, $5::int)
      AND "handler" IS NOT DISTINCT FROM $6::text"#;

/// The failed attempts of a row with one more, the last ten: of the node `$1` with the attempts and the failure of `v`. Should another
/// program have written there what is no array, that is its first element.
const FAILED: &str = r#"coalesce(jsonb_path_query_array("failures", '$[last - 8 to last]'), '[]') || jsonb_build_object(
            'attempts', v."attempts", 'at', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
            'node', $1::text, 'error', v."failure")"#;

/// The bytes of a row's payload and headers.
const CONTENT_SIZE: &str = r#"(coalesce(octet_length(e."payload"::text), octet_length(e."payload_bytes"), 0) + coalesce(octet_length(e."headers"::text), 0))"#;

/// A column of a row that is too large to be read; it stands before its bytes. Only what takes half a mebibyte of the table is looked into:
/// from less, PostgreSQL makes 128 MiB at most. The cost for all other rows is one look at the length of the payload, and less than 0.1 µs.
fn too_large(column: &str) -> String {
    let limit = limits::ROW_BYTES;
    format!(r#"pg_column_size(e."{column}") > 524288 AND {CONTENT_SIZE} > {limit}"#)
}

/// The payload and the headers as text, and the payload as bytes. In the place of what is [too large](too_large) stands its size, with which
/// [`row::TOO_LARGE`] begins, and no bytes.
fn contents(text: &str) -> String {
    let size = format!("chr({}) || {CONTENT_SIZE}", u32::from(row::TOO_LARGE));
    let (payload, bytes, headers) = (too_large("payload"), too_large("payload_bytes"), too_large("headers"));
    text.replace(
        "{payload}",
        &format!(
            r#"CASE WHEN e."payload" IS NULL THEN CASE WHEN {bytes} THEN {size} END
            WHEN {payload} THEN {size} ELSE e."payload"::text END"#
        ),
    )
    .replace(
        "{payload_bytes}",
        &format!(r#"CASE WHEN e."payload_bytes" IS NULL THEN NULL WHEN {bytes} THEN '' ELSE e."payload_bytes" END"#),
    )
    .replace(
        "{headers}",
        &format!(r#"CASE WHEN e."headers" IS NULL THEN NULL WHEN {headers} THEN {size} ELSE e."headers"::text END"#),
    )
}

/// Every statement of the store, with the names of its tables filled in: each under the name of its file in `sql/`.
macro_rules! statements {
    (plain: $($plain:ident)*; fenced: $($fenced:ident)*; of_rows_alike: $($alike:ident)*) => {
        #[derive(Debug)]
        pub(crate) struct Sql {
            pub(crate) insert_one: Arc<str>,
            pub(crate) insert_many: Arc<str>,
            pub(crate) receive: Arc<str>,
            pub(crate) insert_unique: Arc<str>,
            pub(crate) fetch: Fetches,
            $(pub(crate) $plain: String,)*
            $(pub(crate) $fenced: Fenced,)*
            pub(crate) recent: Recent,
            pub(crate) cancel: Intervention,
            pub(crate) retry_now: Intervention,
            $(pub(crate) $alike: ByDensity,)*
            /// The statements of the same names without `as`, for rows that keep positions.
            pub(crate) settle_done_as: ByDensity,
            pub(crate) settle_mixed_as: Fenced,
            pub(crate) complete_as: Fenced,
        }

        impl Sql {
            pub(crate) fn new(table: &TableName) -> Self {
                let verb = |text: &str| {
                    contents(&render(&without_comments(text), table))
                        .replace("{content_size}", CONTENT_SIZE)
                        .replace("{failed}", FAILED)
                        .replace("{fingerprint}", FINGERPRINT)
                        .replace("{event_is_named}", EVENT_IS_NAMED)
                        .replace("{and_position}", "")
                };
                let fenced = |text: &str| {
                    let under = |of_the_node, of_the_row| {
                        let text = text.replace("{and_owns_the_table}", of_the_node);
                        verb(&text.replace("{and_is_its_own}", of_the_row))
                    };
                    Fenced {
                        table: under(OWNS_THE_TABLE, ""),
                        partition: under("", ITS_PARTITION_IS_OWNED),
                        row: under("", HOLDS_THE_ROW),
                    }
                };
                let by_density = |text: &str| ByDensity {
                    sparse: fenced(&text.replace("{is_among_them}", ONE_BY_ONE)),
                    dense: fenced(&text.replace("{is_among_them}", IN_A_ROW)),
                };
                Self {
                    insert_one: verb(include_str!("../sql/insert_one.sql")).into(),
                    insert_many: verb(include_str!("../sql/insert_many.sql")).into(),
                    receive: verb(include_str!("../sql/receive.sql")).into(),
                    insert_unique: verb(include_str!("../sql/insert_unique.sql")).into(),
                    fetch: Fetches::new(include_str!("../sql/fetch.sql"), verb),
                    $($plain: verb(include_str!(concat!("../sql/", stringify!($plain), ".sql"))),)*
                    recent: Recent::new(verb),
                    cancel: Intervention::new(include_str!("../sql/cancel.sql"), verb),
                    retry_now: Intervention::new(include_str!("../sql/retry_now.sql"), verb),
                    $($fenced: fenced(include_str!(concat!("../sql/", stringify!($fenced), ".sql"))),)*
                    $($alike: by_density(include_str!(concat!("../sql/", stringify!($alike), ".sql"))),)*
                    settle_done_as: by_density(&with_position(include_str!("../sql/settle_done.sql"), &positions::assignment(7))),
                    settle_mixed_as: fenced(&with_position(include_str!("../sql/settle_mixed.sql"), &positions::assignment(21))),
                    complete_as: fenced(&with_position(include_str!("../sql/complete.sql"), r#", "delivered_as" = $7::text"#)),
                }
            }
        }
    };
}

statements! {
    plain:
        claim release assign_partitions promote_due identify writers now lock live_nodes join renew lease_end leave
        probe evict free_abandoned rebalance give_partitions leave_partitions take_partitions membership free_orphans counts
        backlog nodes partitions partition_owners blocked head_of read_point read_point_next
        read_point_lowest read_point_set_aside read_point_raise record record_by_seq newest record_json pending count_pending
        dead count_dead replay discard interventions pause resume pauses count_paused purge inbox_consumers inbox_count inbox_purge channel notify states
        action_record action_end actions actions_purge;
    fenced:
        begin_attempt complete complete_removed settle_mixed;
    of_rows_alike:
        settle_done settle_removed
}

/// The form of a statement for rows that keep positions.
fn with_position(text: &str, assignment: &str) -> String {
    text.replace("{and_position}", assignment)
}

/// A table's name for SQL: quoted, and with its schema if one was configured.
pub(crate) fn qualified(table: &TableName, name: &str) -> String {
    match table.schema() {
        Some(schema) => format!(r#""{schema}"."{name}""#),
        None => format!(r#""{name}""#),
    }
}

/// The rows that wait for their first attempt in the place of their `seq`: nearly all that are pending. No index knows of them, so
/// that delivering one changes none; they are found by the primary key, [above a point](READ_POINT) below which there are none.
/// The last condition follows from the others: by it the server knows the index that the release before needs, where tables still have it.
const IS_PLAIN: &str = r#""status" = 0 AND "aside" IS NULL AND ("available_at" IS NULL OR "status" = 0 AND "available_at" <= "created_at")"#;
/// Other pending rows without a due time, which are in an index of their own: held, replayed, or due after a delay. Writers that stamp
/// both times, as those of an adopted table do, mean no delay by a due time that is not after the creation, whatever their clock says.
/// Only a NEW row's due time is its writer's.
const IS_ASIDE: &str =
    r#""aside" IN (0, 2) AND ("available_at" IS NULL OR "aside" = 0 AND "available_at" <= "created_at")"#;
/// The pending rows with a due time, which are in the index of due times.
const IS_TIMED: &str =
    r#""aside" IN (0, 2) AND "available_at" IS NOT NULL AND ("aside" = 2 OR "available_at" > "created_at")"#;
/// All pending rows without a due time, in no order.
const READY: &str = r#"(SELECT * FROM {event} WHERE {is_plain} AND "seq" > {read_point} UNION ALL SELECT * FROM {event} WHERE {is_aside})"#;
/// The number of a pending row's state: new, delayed, retrying.
const PENDING_STATE: &str = r#"(CASE WHEN "status" = 2 THEN 2
    WHEN "available_at" > "created_at" AND "available_at" > now() THEN 1 ELSE 0 END)::smallint"#;
/// True if a row is of the event type `$1`, the aggregate type `$2` and the tenant `$3`, for the handler `$4` and of the key `$5`, of those that
/// are not NULL.
const ATTRIBUTES: &str = r#"($1::text IS NULL OR "event_type" = $1::text)
      AND ($2::text IS NULL OR coalesce("aggregate_type", '__GLOBAL__') = $2::text)
      AND ($3::text IS NULL OR "tenant_id" = $3::text)
      AND ($4::text IS NULL OR "handler" = $4::text)
      AND ($5::text IS NULL OR coalesce("ordering_key", "aggregate_id") = $5::text)"#;
/// True if a pending row has the attributes and is in the state `$6`, unless that is NULL.
const PENDING_MATCHING: &str = r#"{attributes} AND ($6::smallint IS NULL OR {pending_state} = $6::smallint)"#;
/// The pending rows from `$12` on and below `$11`, each kind by its index; of the RETRY ones none is plain.
const PENDING_ROWS: &str = r#"(
    SELECT * FROM {event} WHERE {is_plain} AND "seq" > {read_point} AND "seq" < $11::bigint AND "seq" >= $12::bigint
    UNION ALL SELECT * FROM {event} WHERE {is_aside} AND "seq" < $11::bigint AND "seq" >= $12::bigint
    UNION ALL (SELECT * FROM {event} WHERE {is_timed} AND ("seq" < $11::bigint AND "seq" >= $12::bigint) IS TRUE OFFSET 0))"#;
/// The rows of an event, so that the server does not look for them in the order of the table.
const ROWS_OF_EVENT: &str = r#"(SELECT * FROM {event} WHERE "event_id" = $10::text OFFSET 0)"#;
/// No plain row is pending at or below it, in the moment of the statement. The sequence is named in the row, since looking it up would
/// cost each statement more than finding its rows; and the table with it, since another may have its name by now, with a sequence of its own.
const READ_POINT: &str = r#"coalesce((SELECT "read_point" FROM {partition} WHERE "partition" = 0
    AND "read_point_numbers" = ('{event}'::regclass::bigint << 32 | pg_relation_filenode("read_point_sequence")::bigint)
    AND "read_point_interventions" = "interventions"), -9223372036854775808)"#;
/// The sequence of the numbers.
const SEQUENCE: &str = "pg_get_serial_sequence('{event}', 'seq')::regclass::oid";
/// True if the `"sequence"` gives ascending numbers, each to the next row that is written, and all rows are written on this server. The rows of a
/// subscription come in the order of another server's commits, and nothing here tells of that server's open transactions.
const NUMBERS_ARE_IN_ORDER: &str = r#"coalesce((SELECT "seqcache" = 1 AND "seqincrement" > 0 FROM pg_sequence WHERE "seqrelid" = "sequence"), false)
    AND NOT EXISTS (SELECT FROM pg_subscription_rel WHERE "srrelid" = '{event}'::regclass)"#;
/// The last number that the `"sequence"` has given, zero before the first; NULL if the user may not know.
const LAST_NUMBER: &str = r#"CASE WHEN has_sequence_privilege("sequence", 'SELECT, USAGE')
    THEN coalesce(pg_sequence_last_value("sequence"), 0) END"#;

/// Fills in the names; they are the only thing in the SQL that is not constant, and `TableName` has checked them.
pub(crate) fn render(text: &str, table: &TableName) -> String {
    let event = table.event();
    // Indexes and constraints live in the schema of their table and are created under their bare name.
    let on_event = |suffix: &str| format!(r#""{event}_{suffix}""#);
    let text = text
        .replace("{cancelled}", &format!("'{CANCELLED}'"))
        .replace("{most_counted}", &Blocked::COUNTED_UP_TO.to_string())
        .replace("{ready}", READY)
        .replace("{pending_matching}", PENDING_MATCHING)
        .replace("{attributes}", ATTRIBUTES)
        .replace("{pending_state}", PENDING_STATE)
        .replace("{is_plain}", IS_PLAIN)
        .replace("{is_aside}", IS_ASIDE)
        .replace("{is_timed}", IS_TIMED)
        .replace("{read_point}", READ_POINT)
        .replace("{numbers_are_in_order}", NUMBERS_ARE_IN_ORDER)
        .replace("{last_number}", LAST_NUMBER)
        .replace("{sequence}", SEQUENCE)
        .replace("{event}", &qualified(table, event))
        .replace("{inbox_age_index}", &format!("\"{}\"", table.beside("inbox_age_idx")))
        .replace("{event_pk}", &on_event("pkey"))
        .replace("{event_id_key}", &on_event("event_id_key"))
        .replace("{ready_index}", &on_event("ready_idx"))
        .replace("{due_index}", &on_event("due_idx"))
        .replace("{of_schema}", &table.schema().map_or_else(String::new, |schema| format!("\"{schema}\".")))
        .replace("{new_ready_index}", &on_event("new_ready_idx"))
        .replace("{new_due_index}", &on_event("new_due_idx"))
        .replace("{dead_index}", &on_event("dead_idx"))
        .replace("{head_index}", &on_event("head_idx"))
        .replace("{aside_index}", &on_event("aside_idx"))
        .replace("{unique_index}", &on_event("unique_idx"))
        .replace("{new_dead_index}", &on_event("new_dead_idx"))
        .replace("{new_head_index}", &on_event("new_head_idx"))
        .replace("{seq_key}", &on_event("seq_key"));
    let named = |text: String, role| text.replace(&format!("{{{role}}}"), &qualified(table, &table.beside(role)));
    TableName::COMPANIONS.into_iter().fold(text, named)
}

/// Comments are for readers; behind a pooler the text travels with every call.
pub(crate) fn without_comments(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_placeholder_is_left_and_all_names_are_quoted() {
        let table = TableName::parse("Billing.orders").expect("valid");
        let sql = format!("{:?}", Sql::new(&table));
        for placeholder in [
            "{event",
            "{node",
            "{partition",
            "{inbox",
            "{pause",
            "{and_",
            "{fingerprint",
            "{event_is",
            "{is_",
            "{most_",
            "{numbers_",
            "{last_",
        ] {
            assert!(!sql.contains(placeholder), "{sql}");
        }
        assert!(sql.contains(r#"\"Billing\".\"orders\""#) && sql.contains(r#"\"Billing\".\"orders_node\""#), "{sql}");
    }
}
