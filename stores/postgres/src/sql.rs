use std::sync::Arc;

use pillarbox_core::store::TableName;

/// Every statement of the store, with the names of its tables filled in.
#[derive(Debug)]
pub(crate) struct Sql {
    pub(crate) insert_one: Arc<str>,
    pub(crate) insert_many: Arc<str>,
    pub(crate) fetch: String,
    pub(crate) settle_done: String,
    pub(crate) settle_mixed: String,
    pub(crate) counts: String,
    pub(crate) lock: String,
    pub(crate) live_nodes: String,
    pub(crate) join: String,
    pub(crate) renew: String,
    pub(crate) leave: String,
    pub(crate) probe: String,
    pub(crate) clear_nodes: String,
    pub(crate) free_partitions: String,
    pub(crate) take_partitions: String,
}

impl Sql {
    pub(crate) fn new(table: &TableName) -> Self {
        let verb = |text: &str| render(&without_comments(text), table);
        Self {
            insert_one: verb(include_str!("../sql/insert_one.sql")).into(),
            insert_many: verb(include_str!("../sql/insert_many.sql")).into(),
            fetch: verb(include_str!("../sql/fetch.sql")),
            settle_done: verb(include_str!("../sql/settle_done.sql")),
            settle_mixed: verb(include_str!("../sql/settle_mixed.sql")),
            counts: verb(include_str!("../sql/counts.sql")),
            lock: verb(include_str!("../sql/lock.sql")),
            live_nodes: verb(include_str!("../sql/live_nodes.sql")),
            join: verb(include_str!("../sql/join.sql")),
            renew: verb(include_str!("../sql/renew.sql")),
            leave: verb(include_str!("../sql/leave.sql")),
            probe: verb(include_str!("../sql/probe.sql")),
            clear_nodes: verb(include_str!("../sql/clear_nodes.sql")),
            free_partitions: verb(include_str!("../sql/free_partitions.sql")),
            take_partitions: verb(include_str!("../sql/take_partitions.sql")),
        }
    }
}

/// A table's name for SQL: quoted, and with its schema if one was configured.
pub(crate) fn qualified(table: &TableName, name: &str) -> String {
    match table.schema() {
        Some(schema) => format!(r#""{schema}"."{name}""#),
        None => format!(r#""{name}""#),
    }
}

/// Fills in the names; they are the only thing in the SQL that is not constant, and `TableName` has checked them.
pub(crate) fn render(text: &str, table: &TableName) -> String {
    let event = table.event();
    // Indexes and constraints live in the schema of their table and are created under their bare name.
    let on_event = |suffix: &str| format!(r#""{event}_{suffix}""#);
    text.replace("{event}", &qualified(table, event))
        .replace("{node}", &qualified(table, &table.beside("node")))
        .replace("{partition}", &qualified(table, &table.beside("partition")))
        .replace("{migration}", &qualified(table, &table.beside("migration")))
        .replace("{event_pk}", &on_event("pkey"))
        .replace("{event_id_key}", &on_event("event_id_key"))
        .replace("{ready_index}", &on_event("ready_idx"))
        .replace("{due_index}", &on_event("due_idx"))
}

/// Comments are for readers; behind a pooler the text travels with every call.
fn without_comments(text: &str) -> String {
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
        assert!(!sql.contains("{event") && !sql.contains("{node") && !sql.contains("{partition"), "{sql}");
        assert!(sql.contains(r#"\"Billing\".\"orders\""#) && sql.contains(r#"\"Billing\".\"orders_node\""#), "{sql}");
    }
}
