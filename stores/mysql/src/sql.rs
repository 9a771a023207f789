use std::sync::Arc;

use pillarbox_core::event::limits;
use pillarbox_core::store::{CANCELLED, TableName};
use pillarbox_core::write::ENDED;

/// Every statement of the store, and every part that is added to some of them, with the names of its tables filled in: each under the name
/// of its file in `sql/` or `sql/parts/`. Names in braces that are left are values or parts.
macro_rules! statements {
    (whole: $($name:ident)*; parts: $($part:ident)*) => {
        #[derive(Debug)]
        pub(crate) struct Sql {
            $(pub(crate) $name: String,)*
            $(pub(crate) $part: String,)*
            /// The insert of a single row, which adapters keep prepared.
            pub(crate) insert_one: Arc<str>,
            pub(crate) insert_one_returning: Arc<str>,
            /// The insert of a message, which adapters keep prepared.
            pub(crate) receive: Arc<str>,
            pub(crate) find_unique: Arc<str>,
            pub(crate) free_unique: Arc<str>,
            pub(crate) insert_unique: Arc<str>,
            pub(crate) inserted_unique: Arc<str>,
        }

        impl Sql {
            pub(crate) fn new(table: &TableName) -> Self {
                let columns = without_comments(include_str!("../sql/parts/event_columns.sql"));
                let key = without_comments(include_str!("../sql/parts/key.sql"));
                let listed = without_comments(include_str!("../sql/parts/recent_columns.sql"));
                let verb = |text: &str| {
                    render(&without_comments(text), table)
                        .replace("{columns}", &columns)
                        .replace("{key}", &key)
                        .replace("{listed}", listed.trim_end())
                        .replace("{payload}", &content("payload"))
                        .replace("{payload_bytes}", &content("payload_bytes"))
                        .replace("{headers}", &content("headers"))
                        .replace("{bytes_if_too_large}", &format!("IF({}, {CONTENT_SIZE}, NULL)", is_too_large()))
                };
                let values = verb(include_str!("../sql/parts/insert_values.sql"));
                let insert_one = format!("{}\n{values}", verb(include_str!("../sql/insert.sql")));
                Self {
                    insert_one_returning: format!("{insert_one}{RETURNING}").into(),
                    insert_one: insert_one.into(),
                    receive: verb(include_str!("../sql/receive.sql")).into(),
                    find_unique: verb(include_str!("../sql/find_unique.sql")).into(),
                    free_unique: verb(include_str!("../sql/free_unique.sql")).into(),
                    insert_unique: verb(include_str!("../sql/insert_unique.sql")).replace("{ended}", &ENDED.to_string()).into(),
                    inserted_unique: verb(include_str!("../sql/inserted_unique.sql")).into(),
                    $($name: verb(include_str!(concat!("../sql/", stringify!($name), ".sql"))),)*
                    $($part: verb(include_str!(concat!("../sql/parts/", stringify!($part), ".sql"))),)*
                }
            }
        }
    };
}

statements! {
    whole:
        insert inserted
        fetch_ready fetch_due fetch_times claim release
        fence settle_lock settle_done_at_once settle_removed_at_once
        settle_done settle_retry settle_retry_in_place settle_ended begin_attempt
        assign_partitions promote_due identify highest now
        lock live_nodes join renew lease_end leave evict leave_partitions free_abandoned take_table probe
        members owners give_partitions take_partitions
        membership reclaim_orphans free_orphans
        counts backlog nodes partitions partition_owners lowest_head blocked head_of record record_by_seq newest record_json states
        pending count_pending dead count_dead dead_lock replay delete purge_window purge
        interventions intervene intervened pending_lock waiting_lock cancel retry_now
        inbox_consumers inbox_count inbox_old inbox_delete
        pause_ended pause_found pause resume pauses count_paused
        recent recent_end recent_pending recent_end_pending action_record action_end actions actions_old actions_delete
        table_columns schema_exists migration_lock;
    parts:
        insert_values
        wanted scope of_keys only without without_types without_handlers heads unblocked free
        held held_partition of_events of_handlers position failed
        not_before
}

/// The clause that MariaDB adds to an insert, and MySQL lacks.
pub(crate) const RETURNING: &str = "\nRETURNING `seq`";

/// The bytes of a row's payload and headers.
const CONTENT_SIZE: &str =
    "COALESCE(LENGTH(e.`payload`), 0) + COALESCE(LENGTH(e.`payload_bytes`), 0) + COALESCE(LENGTH(e.`headers`), 0)";

/// True of a row that is not read: its payload and headers are too large, or the server could not send them with the other columns.
fn is_too_large() -> String {
    format!("{CONTENT_SIZE} > LEAST({}, @@max_allowed_packet DIV 16 * 15)", limits::ROW_BYTES)
}

/// The payload, as bytes or as text, or the headers; NULL if the row is too large.
fn content(column: &str) -> String {
    format!("IF({}, NULL, e.`{column}`)", is_too_large())
}

/// A table's name for SQL: quoted, and with its database if one was configured.
pub(crate) fn qualified(table: &TableName, name: &str) -> String {
    match table.schema() {
        Some(schema) => format!("`{schema}`.`{name}`"),
        None => format!("`{name}`"),
    }
}

/// Fills in the names of the tables; `TableName` has checked them.
pub(crate) fn render(text: &str, table: &TableName) -> String {
    // As the catalog has them. They are identifiers, so that quoting needs no escaping.
    let schema = table.schema().map_or_else(|| "DATABASE()".to_owned(), |schema| format!("'{schema}'"));
    let text = text
        .replace("{cancelled}", &format!("'{CANCELLED}'"))
        .replace("{event_schema}", &schema)
        .replace("{event_name}", &format!("'{}'", table.event()))
        .replace("{event}", &qualified(table, table.event()));
    let named = |text: String, role| text.replace(&format!("{{{role}}}"), &qualified(table, &table.beside(role)));
    TableName::COMPANIONS.into_iter().fold(text, named)
}

/// Comments are for readers; the text travels with every call.
pub(crate) fn without_comments(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    lines.join("\n")
}

/// Several statements as one text, which the server runs one after the other, up to the first that fails.
pub(crate) fn script<S: AsRef<str>>(statements: impl IntoIterator<Item = S>) -> String {
    let mut script = String::new();
    for statement in statements {
        if !script.is_empty() {
            script.push_str(";\n");
        }
        script.push_str(statement.as_ref());
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_table_is_left_unnamed_and_all_names_are_quoted() {
        let table = TableName::parse("Billing.orders").expect("valid");
        let sql = format!("{:?}", Sql::new(&table));
        for placeholder in [
            "{event}",
            "{node}",
            "{partition}",
            "{migration}",
            "{inbox}",
            "{pause}",
            "{audit}",
            "{listed}",
            "{columns}",
            "{key}",
        ] {
            assert!(!sql.contains(placeholder), "{placeholder}: {sql}");
        }
        assert!(sql.contains("`Billing`.`orders`") && sql.contains("`Billing`.`orders_node`"), "{sql}");
        assert!(!sql.contains("--"), "{sql}");
    }
}
