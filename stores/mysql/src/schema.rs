//! Creating, adopting and checking the tables.
//!
//! Statements that make tables commit by themselves, so a migration may be cut short between any two of them. Each of
//! them is therefore one that may be run again, they run one process at a time, and the version is recorded last.

use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::TableName;

use crate::answer::{int, is_true, text};
use crate::error::{Failure, migrate_remedy};
use crate::literal::{Literal, fill};
use crate::session::Session;
use crate::sql::{qualified, render, without_comments};
use crate::store::Inner;

/// What each version added, ascending. Versions are the same in every store, so some are not in this one; a released file never
/// changes.
const MIGRATIONS: [(i64, &str); 3] = [
    (1, include_str!("../migrations/0001_outbox.sql")),
    (3, include_str!("../migrations/0003_handlers.sql")),
    (4, include_str!("../migrations/0004_heads.sql")),
];
const MIGRATION_TABLE: &str = include_str!("../sql/migration_table.sql");
const ADOPT: &str = include_str!("../sql/adopt.sql");

/// By which columns a table is known to be ours: those that others would not have by chance.
const OURS: [(&str, &[&str]); 4] = [
    ("event", &["seq", "event_id", "event_type", "payload", "status", "available_at", "locked_by", "queue", "due_at"]),
    ("node", &["node_id", "mode", "started_at", "expires_at"]),
    ("partition", &["partition", "node_id", "epoch"]),
    ("migration", &["version", "applied_at"]),
];
/// By which columns an event table of outbox-java is known.
const OUTBOX_JAVA: [&str; 15] = [
    "event_id",
    "event_type",
    "aggregate_type",
    "aggregate_id",
    "tenant_id",
    "payload",
    "headers",
    "status",
    "attempts",
    "available_at",
    "created_at",
    "done_at",
    "last_error",
    "locked_by",
    "locked_at",
];

/// The version this release needs.
fn latest() -> i64 {
    MIGRATIONS.last().map_or(0, |(version, _)| *version)
}

/// The SQL that leads from the `applied` version to the latest, with the records of it.
pub(crate) fn script(table: &TableName, applied: i64) -> String {
    let database = table.schema().filter(|_| applied == 0).map(create_database);
    database.unwrap_or_default() + &tables(table, applied)
}

fn create_database(schema: &str) -> String {
    format!("CREATE DATABASE IF NOT EXISTS `{schema}`;\n")
}

fn tables(table: &TableName, applied: i64) -> String {
    let mut script = String::new();
    if applied == 0 {
        script.push_str(MIGRATION_TABLE);
    }
    for (version, migration) in MIGRATIONS.into_iter().filter(|(version, _)| *version > applied) {
        script.push_str(&format!("\n-- Version {version}\n\n{migration}"));
        script.push_str(&format!("INSERT IGNORE INTO {{migration}} (`version`) VALUES ({version});\n"));
    }
    render(&script, table)
}

/// Runs what is missing, one process at a time. Where nothing is missing nothing is locked or written, and no privilege
/// to create tables is needed.
pub(crate) async fn migrate(store: &Inner) -> Result<(), Failure> {
    let mut session = store.sessions.session().await?;
    if applied(store, &mut session).await? == latest() {
        session.finish();
        return Ok(());
    }
    lock(store, &mut session).await?;
    // Another process may have done it while this one waited.
    let applied = applied(store, &mut session).await?;
    if applied < latest() {
        if applied == 0 {
            prepare(store, &mut session).await?;
        }
        for statement in statements(&without_comments(&tables(&store.table, applied))) {
            make(&mut session, statement).await?;
        }
    }
    // The session is closed, not given back: with it goes the lock, and what was set for the migration.
    Ok(())
}

/// The statements of a script, each of which ends with its line.
fn statements(script: &str) -> impl Iterator<Item = &str> {
    script.split(";\n").map(str::trim).filter(|statement| !statement.is_empty())
}

/// Runs a statement of a migration. Columns and indexes that are there already were made by a migration that was cut short:
/// no other may have these names in a table of ours.
async fn make(session: &mut Session, statement: &str) -> Result<(), Failure> {
    match session.run(statement).await {
        Err(failure) if failure.is_there_already() => Ok(()),
        answer => answer.map(|_| ()),
    }
}

/// Takes the lock of migrations of this table, and lets statements take their time.
async fn lock(store: &Inner, session: &mut Session) -> Result<(), Failure> {
    let unlimited =
        "SET SESSION wait_timeout = 28800 /*!80001 , max_execution_time = 0 */ /*M!100600 , max_statement_time = 0 */";
    session.run(unlimited).await?;
    let values = [
        ("schema", &Literal::optional_text(store.table.schema())),
        ("table", &Literal::text(store.table.event())),
        ("seconds", &Literal::int(3600)),
    ];
    let answers = session.run(fill(&store.sql.migration_lock, &values)).await?;
    if answers.first(0).map(|row| is_true(row, 0)).transpose()? == Some(true) {
        return Ok(());
    }
    let problem = "another migration of these tables has not ended; wait for it, or end its connection".to_owned();
    Err(Failure::Refused(StoreErrorKind::Contention, problem))
}

/// Before the first version: makes the database, adopts a table of outbox-java, refuses a stranger's. What refuses comes
/// first.
async fn prepare(store: &Inner, session: &mut Session) -> Result<(), Failure> {
    let table = &store.table;
    let event = columns(store, session, table.event()).await?;
    for (role, ours) in OURS {
        let name = if role == "event" { table.event().to_owned() } else { table.beside(role) };
        let found = columns(store, session, &name).await?;
        let has = |wanted: &&str| found.iter().any(|column| column.name.eq_ignore_ascii_case(wanted));
        let adoptable = role == "event" && is_outbox_java(&found);
        if !found.is_empty() && !ours.iter().all(has) && !adoptable {
            let problem = format!(
                "there is a table `{name}` that is neither Pillarbox's nor outbox-java's; rename it, or configure another \
                 name for the outbox's table"
            );
            return Err(Failure::Refused(StoreErrorKind::Schema, problem));
        }
    }
    if let Some(schema) = table.schema() {
        let exists = fill(&store.sql.schema_exists, &[("schema", &Literal::text(schema))]);
        // It wants the privilege to create databases even where there is nothing to do.
        if session.run(exists).await?.first(0).is_none() {
            session.run(create_database(schema)).await?;
        }
    }
    if is_outbox_java(&event) {
        session.run(render(&without_comments(ADOPT), table)).await?;
    }
    Ok(())
}

/// A column of a table that was found.
struct Column {
    name: String,
    primary: bool,
}

fn is_outbox_java(columns: &[Column]) -> bool {
    let find = |wanted: &str| columns.iter().find(|column| column.name.eq_ignore_ascii_case(wanted));
    let primary: Vec<&str> = columns.iter().filter(|column| column.primary).map(|column| &*column.name).collect();
    OUTBOX_JAVA.iter().all(|wanted| find(wanted).is_some())
        && find("seq").is_none()
        && matches!(primary[..], [key] if key.eq_ignore_ascii_case("event_id"))
}

/// The columns of a table; none, if it does not exist.
async fn columns(store: &Inner, session: &mut Session, name: &str) -> Result<Vec<Column>, Failure> {
    let values = [("schema", &Literal::optional_text(store.table.schema())), ("table", &Literal::text(name))];
    let answers = session.run(fill(&store.sql.table_columns, &values)).await?;
    let column = |row| {
        let (name, key) = (text(row, 0)?.unwrap_or_default(), text(row, 1)?.unwrap_or_default());
        Ok(Column { name: name.to_owned(), primary: key == "PRI" })
    };
    answers.rows(0).iter().map(column).collect()
}

/// Verifies that every table is there and of the version this release needs.
pub(crate) async fn check(store: &Inner) -> Result<(), Failure> {
    let table = &store.table;
    let mut session = store.sessions.session().await?;
    let mut missing = Vec::new();
    for (role, _) in OURS {
        let name = if role == "event" { table.event().to_owned() } else { table.beside(role) };
        if columns(store, &mut session, &name).await?.is_empty() {
            missing.push(qualified(table, &name).replace('`', ""));
        }
    }
    if !missing.is_empty() {
        let problem = format!("missing tables: {}", missing.join(", "));
        return Err(Failure::Refused(StoreErrorKind::Schema, migrate_remedy(&problem)));
    }
    let applied = applied(store, &mut session).await?;
    session.finish();
    if applied < latest() {
        let problem = format!("the tables of {table} are of version {applied}, this release needs {}", latest());
        return Err(Failure::Refused(StoreErrorKind::Schema, migrate_remedy(&problem)));
    }
    Ok(())
}

/// The version the tables have, zero if there are none; an error if it is newer than this release knows.
async fn applied(store: &Inner, session: &mut Session) -> Result<i64, Failure> {
    let table = &store.table;
    let migration = table.beside("migration");
    let found = columns(store, session, &migration).await?;
    // A table of another purpose is refused later, by name.
    if !found.iter().any(|column| column.name == "version") {
        return Ok(0);
    }
    let name = qualified(table, &migration);
    let answers = session.run(format!("SELECT COALESCE(MAX(`version`), 0) FROM {name}")).await?;
    let version = answers.first(0).map_or(Ok(0), |row| int(row, 0))?;
    if version > latest() {
        let problem = format!(
            "the tables of {table} are of version {version}, newer than the {} this release knows; upgrade Pillarbox",
            latest()
        );
        return Err(Failure::Refused(StoreErrorKind::Schema, problem));
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_names_the_configured_table_and_records_each_version() {
        let table = TableName::parse("billing.orders_event").expect("valid");
        let sql = script(&table, 0);
        assert!(!sql.contains(['{', '}']), "a placeholder is left: {sql}");
        assert!(sql.starts_with("CREATE DATABASE IF NOT EXISTS `billing`;"), "{sql}");
        for (version, _) in MIGRATIONS {
            let record = format!("INSERT IGNORE INTO `billing`.`orders_migration` (`version`) VALUES ({version});");
            assert!(sql.contains(&record), "{sql}");
        }
        assert_eq!(script(&table, latest()), "", "nothing is left to do");
    }

    #[test]
    fn an_upgrade_adds_what_is_missing_only() {
        let table = TableName::parse("outbox_event").expect("valid");
        let upgrade = without_comments(&script(&table, 3));
        let words: Vec<Vec<&str>> =
            statements(&upgrade).map(|statement| statement.split_whitespace().take(3).collect()).collect();
        let expected = [
            ["ALTER", "TABLE", "`outbox_event`"],
            ["ALTER", "TABLE", "`outbox_event`"],
            ["ALTER", "TABLE", "`outbox_partition`"],
            ["INSERT", "IGNORE", "INTO"],
        ];
        assert_eq!(words, expected, "{upgrade}");
    }

    #[test]
    fn a_table_is_told_by_its_columns() {
        let columns = |names: &[&str]| -> Vec<Column> {
            names.iter().map(|name| Column { name: (*name).to_owned(), primary: *name == "event_id" }).collect()
        };
        assert!(is_outbox_java(&columns(&OUTBOX_JAVA)));
        assert!(!is_outbox_java(&columns(&OUTBOX_JAVA[..14])));
        assert!(!is_outbox_java(&columns(&[&OUTBOX_JAVA[..], &["seq"]].concat())));
        assert!(!is_outbox_java(&[]));
    }
}
