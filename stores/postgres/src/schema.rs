use deadpool_postgres::Transaction;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::TableName;
use tokio_postgres::types::Type;

use crate::adopt;
use crate::error::{Failure, migrate_remedy};
use crate::sql::{qualified, render};
use crate::store::Inner;

/// What each version added, in ascending order; a released file never changes.
const MIGRATIONS: [(i32, &str); 4] = [
    (1, OUTBOX),
    (2, include_str!("../migrations/0002_dead_events.sql")),
    (3, include_str!("../migrations/0003_handlers.sql")),
    (4, include_str!("../migrations/0004_heads.sql")),
];
const OUTBOX: &str = include_str!("../migrations/0001_outbox.sql");
const MIGRATION_TABLE: &str = include_str!("../sql/migration_table.sql");
const TABLE_EXISTS: &str = include_str!("../sql/table_exists.sql");

/// The version this release needs.
fn latest() -> i32 {
    MIGRATIONS.iter().map(|(version, _)| *version).max().unwrap_or_default()
}

/// The SQL that leads from the `applied` version to the latest, with the records of it.
pub(crate) fn script(table: &TableName, applied: i32) -> String {
    compose(table, applied, OUTBOX)
}

/// The same for an event table that is there already: `adopt` brings it to what version 1 creates, and the rest of
/// version 1 follows.
fn adoption(table: &TableName, adopt: &str) -> String {
    let (_, rest) = OUTBOX.split_once(AFTER_THE_EVENT_TABLE).unwrap_or_default();
    compose(table, 0, &format!("{adopt}{AFTER_THE_EVENT_TABLE}{rest}"))
}

/// Where version 1 goes on to indexes and the other tables.
const AFTER_THE_EVENT_TABLE: &str = "CREATE INDEX {ready_index}";

fn compose(table: &TableName, applied: i32, first: &str) -> String {
    let mut script = String::new();
    if applied == 0 {
        if let Some(schema) = table.schema() {
            script.push_str(&create_schema(schema));
        }
        script.push_str(MIGRATION_TABLE);
    }
    let migrations = std::iter::once((1, first)).chain(MIGRATIONS.into_iter().skip(1));
    for (version, migration) in migrations.filter(|(version, _)| *version > applied) {
        script.push_str(&format!("\n-- Version {version}\n\n{migration}"));
        script.push_str(&format!("INSERT INTO {{migration}} (\"version\") VALUES ({version});\n"));
    }
    render(&script, table)
}

fn create_schema(schema: &str) -> String {
    format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\";\n")
}

/// Runs what is missing in one transaction, one process at a time. An outbox-java table is adopted.
///
/// The lock is the transaction's, so it cannot outlive it. Where nothing is missing nothing is locked or written, and no
/// privilege to create tables is needed.
pub(crate) async fn migrate(store: &Inner) -> Result<(), Failure> {
    let mut session = store.sessions.session().await?;
    let transaction = session.transaction().await?;
    if applied(&transaction, &store.table).await? < latest() {
        // A migration may take its time and wait for others; the call has its own deadline.
        transaction.batch_execute("SET LOCAL statement_timeout = 0").await?;
        let lock = format!("pillarbox migration of {}", store.table);
        let locked = "SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))";
        transaction.query_typed(locked, &[(&lock, Type::TEXT)]).await?;
        // Another process may have done it while this one waited.
        let applied = applied(&transaction, &store.table).await?;
        if applied < latest() {
            let adopt = if applied == 0 { adopt::script(&transaction, &store.table).await? } else { None };
            let mut script = match adopt {
                Some(adopt) => adoption(&store.table, &adopt),
                None => script(&store.table, applied),
            };
            if let Some(schema) = store.table.schema() {
                script = without_existing_schema(&transaction, schema, script).await?;
            }
            transaction.batch_execute(&script).await?;
        }
    }
    transaction.commit().await?;
    session.finish();
    Ok(())
}

/// `CREATE SCHEMA IF NOT EXISTS` wants the privilege to create schemas even where there is nothing to do.
async fn without_existing_schema(
    transaction: &Transaction<'_>,
    schema: &str,
    script: String,
) -> Result<String, Failure> {
    let exists = "SELECT FROM pg_namespace WHERE nspname = $1::text";
    let found = transaction.query_typed(exists, &[(&schema, Type::TEXT)]).await?;
    Ok(if found.is_empty() { script } else { script.replacen(&create_schema(schema), "", 1) })
}

/// Verifies that every table is there and of the version this release needs.
pub(crate) async fn check(store: &Inner) -> Result<(), Failure> {
    let table = &store.table;
    let roles = ["node", "partition", "migration"];
    let names: Vec<String> = std::iter::once(table.event().to_owned())
        .chain(roles.map(|role| table.beside(role)))
        .map(|name| qualified(table, &name))
        .collect();
    let mut session = store.sessions.session().await?;
    let transaction = session.transaction().await?;
    let missing = "SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL";
    let missing = transaction.query_typed(missing, &[(&names, Type::TEXT_ARRAY)]).await?;
    let missing = missing.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
    if !missing.is_empty() {
        let problem = format!("missing tables: {}", missing.join(", ").replace('"', ""));
        return Err(Failure::Refused(StoreErrorKind::Schema, migrate_remedy(&problem)));
    }
    let applied = applied(&transaction, table).await?;
    if applied < latest() {
        let problem = format!("the tables of {table} are of version {applied}, this release needs {}", latest());
        return Err(Failure::Refused(StoreErrorKind::Schema, migrate_remedy(&problem)));
    }
    transaction.commit().await?;
    session.finish();
    Ok(())
}

/// The version the tables have, zero if there are none; an error if it is newer than this release knows.
async fn applied(transaction: &Transaction<'_>, table: &TableName) -> Result<i32, Failure> {
    // Read from the catalog itself: `to_regclass` may answer from a cache that does not know yet what another process
    // committed while this transaction waited for the lock.
    let (migration, schema) = (table.beside("migration"), table.schema());
    if transaction.query_typed(TABLE_EXISTS, &[(&migration, Type::TEXT), (&schema, Type::TEXT)]).await?.is_empty() {
        return Ok(0);
    }
    let name = qualified(table, &migration);
    let version = format!("SELECT coalesce(max(\"version\"), 0) FROM {name}");
    let version: i32 = transaction.query_typed_one(&version, &[]).await?.try_get(0)?;
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
    fn an_adoption_creates_all_but_the_event_table() {
        let table = TableName::default();
        let (whole, adopted) = (script(&table, 0), adoption(&table, "-- Adopted.\n"));
        let created = |sql: &str| sql.lines().filter(|line| line.starts_with("CREATE")).count();
        assert_eq!(created(&adopted), created(&whole) - 1, "{adopted}");
        assert!(adopted.contains("-- Adopted.") && !adopted.contains("CREATE TABLE \"outbox_event\" ("), "{adopted}");
    }

    #[test]
    fn the_script_names_the_configured_table_and_records_each_version() {
        let table = TableName::parse("billing.orders_event").expect("valid");
        let sql = script(&table, 0);
        assert!(!sql.contains(['{', '}']), "a placeholder is left: {sql}");
        assert!(sql.starts_with("CREATE SCHEMA IF NOT EXISTS \"billing\";"), "{sql}");
        assert!(sql.contains(r#"INSERT INTO "billing"."orders_migration" ("version") VALUES (1);"#), "{sql}");
        assert_eq!(script(&table, latest()), "", "nothing is left to do");
    }
}
