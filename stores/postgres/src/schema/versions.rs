//! The versions of the tables, and the SQL that leads from one to the next.

use pillarbox_core::store::TableName;
use pillarbox_core::store::schema::{Migration, Migrations};

use crate::sql::{qualified, render, without_comments};

pub(super) const MIGRATIONS: Migrations<Steps> = Migrations::new(&[
    Migration::new(1, 1, Steps::sql(OUTBOX)),
    Migration::new(2, 1, Steps { indexes: include_str!("../../migrations/0002_dead_events.sql"), ..Steps::sql("") }),
    Migration::new(3, 3, Steps::sql(include_str!("../../migrations/0003_handlers.sql"))),
    Migration::new(
        4,
        4,
        Steps {
            indexes: include_str!("../../migrations/0004_heads_index.sql"),
            sql: include_str!("../../migrations/0004_heads.sql"),
        },
    ),
    Migration::new(5, 4, Steps::sql(include_str!("../../migrations/0005_compatibility.sql"))),
    Migration::new(
        6,
        6,
        Steps {
            indexes: include_str!("../../migrations/0006_undelayed_indexes.sql"),
            sql: include_str!("../../migrations/0006_undelayed.sql"),
        },
    ),
    Migration::new(7, 6, Steps::sql(include_str!("../../migrations/0007_numbers.sql"))),
    Migration::new(8, 6, Steps::sql(include_str!("../../migrations/0008_leases.sql"))),
    Migration::new(9, 6, Steps::sql(include_str!("../../migrations/0009_replays.sql"))),
    Migration::new(10, 6, Steps::sql(include_str!("../../migrations/0010_read_point.sql"))),
    Migration::new(11, 6, Steps::sql(include_str!("../../migrations/0011_aside.sql"))),
    Migration::new(12, 6, Steps { indexes: include_str!("../../migrations/0012_aside_indexes.sql"), ..Steps::sql("") }),
    Migration::new(13, 6, Steps::sql(include_str!("../../migrations/0013_audit.sql"))),
    Migration::new(14, 6, Steps::sql(include_str!("../../migrations/0014_inbox.sql"))),
    Migration::new(15, 6, Steps::sql(include_str!("../../migrations/0015_pause.sql"))),
    Migration::new(16, 6, Steps::sql(include_str!("../../migrations/0016_failures.sql"))),
    Migration::new(17, 6, Steps::sql(include_str!("../../migrations/0017_unique_key.sql"))),
    Migration::new(
        18,
        6,
        Steps { indexes: include_str!("../../migrations/0018_unique_key_index.sql"), ..Steps::sql("") },
    ),
    Migration::new(19, 6, Steps::sql(include_str!("../../migrations/0019_delivered_as.sql"))),
    // The numbers before it are for additions until the release.
    Migration::contraction(20, 12, Steps::sql(include_str!("../../migrations/0020_aside.sql"))),
]);

/// The SQL of a migration.
pub(super) struct Steps {
    /// Statements that create indexes. On tables that are there they run first, one by one and beside the writers.
    pub(super) indexes: &'static str,
    /// The rest, in one transaction. It locks one of the tables that nodes use and no other: nodes lock them in an order of their
    /// own, and neither would ever wait for the other in a circle.
    pub(super) sql: &'static str,
}

impl Steps {
    const fn sql(sql: &'static str) -> Self {
        Self { indexes: "", sql }
    }
}

/// The SQL that records a migration.
pub(super) fn record(migration: &Migration<Steps>) -> String {
    let version = migration.version;
    match migration.recorded() {
        None => format!("INSERT INTO {{migration}} (\"version\") VALUES ({version});\n"),
        Some(from) => {
            format!("INSERT INTO {{migration}} (\"version\", \"compatible_from\") VALUES ({version}, {from});\n")
        }
    }
}

const OUTBOX: &str = include_str!("../../migrations/0001_outbox.sql");
const MIGRATION_TABLE: &str = include_str!("../../sql/migration_table.sql");

/// The SQL that leads from the `applied` version to the latest, with the records of it.
pub(crate) fn script(table: &TableName, applied: i64) -> String {
    compose(table, applied, OUTBOX)
}

/// The same for an event table that is there already: `adopt` brings it to the table of version 1, and the rest of
/// version 1 follows.
pub(super) fn adoption(table: &TableName, adopt: &str) -> String {
    let (_, rest) = OUTBOX.split_once(AFTER_THE_EVENT_TABLE).unwrap_or_default();
    compose(table, 0, &format!("{adopt}{AFTER_THE_EVENT_TABLE}{rest}"))
}

/// The statement with which version 1 goes on to indexes and the other tables.
const AFTER_THE_EVENT_TABLE: &str = "CREATE INDEX {ready_index}";

fn compose(table: &TableName, applied: i64, first: &str) -> String {
    let mut script = String::new();
    if applied == 0 {
        if let Some(schema) = table.schema() {
            script.push_str(&create_schema(schema));
        }
        script.push_str(MIGRATION_TABLE);
    }
    for migration in MIGRATIONS.after(applied) {
        let Migration { version, sql: Steps { indexes, sql }, .. } = migration;
        let sql = if *version == 1 { first } else { sql };
        script.push_str(&format!("\n-- Version {version}\n\n{indexes}{sql}{}", record(migration)));
    }
    render(&script, table)
}

pub(super) fn create_schema(schema: &str) -> String {
    format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\";\n")
}

/// All tables of an outbox, quoted.
pub(super) fn tables(table: &TableName) -> Vec<String> {
    table.all().iter().map(|name| qualified(table, name)).collect()
}

/// The statement that creates an index of this name, quoted, as an operator would run it beside the writers. One that took another's place
/// was created under a name of its own.
pub(crate) fn create_index(table: &TableName, name: &str) -> Option<String> {
    let event = table.event();
    let replaced = name.replacen(&format!("\"{event}_"), &format!("\"{event}_new_"), 1);
    let script = without_comments(&script(table, 0));
    let statement = |name: &str| {
        let named = format!(" INDEX {name} ON ");
        script.split(";\n").filter(|statement| statement.contains(&named)).last().map(str::trim)
    };
    let create = statement(&replaced).or_else(|| statement(name))?.replacen(&replaced, name, 1);
    let words: Vec<&str> = create.split_whitespace().collect();
    Some(words.join(" ").replacen("INDEX ", "INDEX CONCURRENTLY ", 1) + ";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adoption_creates_all_but_the_event_table() {
        let table = TableName::default();
        let (whole, adopted) = (script(&table, 0), adoption(&table, "-- Adopted.\n"));
        let created = |sql: &str| sql.lines().filter(|line| line.starts_with("CREATE")).count();
        assert_eq!(created(&adopted), created(&whole) - 1, "{adopted}");
        assert!(adopted.contains("-- Adopted.") && !adopted.contains("CREATE TABLE \"outbox_event\" ("), "{adopted}");
    }

    #[test]
    fn a_transaction_of_a_migration_locks_one_table() {
        for Migration { version, sql: Steps { indexes, sql }, .. } in MIGRATIONS.after(1) {
            let sql = without_comments(sql);
            let tables = ["{event}", "{node}", "{partition}", "{inbox}", "{pause}"]
                .into_iter()
                .filter(|table| sql.contains(table));
            assert!(tables.count() <= 1, "version {version}: {sql}");
            // An index of a new table is in nobody's way.
            assert!(sql.contains("CREATE TABLE") || !sql.contains("CREATE INDEX"), "version {version}: {sql}");
            // One that finds rows which are alike is not built. In a column that is new there are none.
            let is_new = indexes.contains("WHERE \"unique_key\" IS NOT NULL");
            assert!(!indexes.contains("UNIQUE") || is_new, "version {version}: {indexes}");
        }
    }

    #[test]
    fn the_script_names_the_configured_table_and_records_each_version() {
        let table = TableName::parse("billing.orders_event").expect("valid");
        let sql = script(&table, 0);
        assert!(!sql.contains(['{', '}']), "a placeholder is left: {sql}");
        assert!(sql.starts_with("CREATE SCHEMA IF NOT EXISTS \"billing\";"), "{sql}");
        assert!(sql.contains(r#"INSERT INTO "billing"."orders_migration" ("version") VALUES (1);"#), "{sql}");
        assert_eq!(script(&table, MIGRATIONS.latest()), "", "nothing is left to do");
    }
}
