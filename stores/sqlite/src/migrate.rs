use std::sync::Arc;

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::refusal::unmigrated;
use pillarbox_core::store::schema::{Migration, Migrations, SchemaVersion};
use pillarbox_core::store::{TableName, operation};
use sqlx::{AssertSqlSafe, SqliteConnection, query, query_as, query_scalar, raw_sql};

use crate::sql::{INDEXES, Sql, render};
use crate::statistics;

/// The steps from an empty database to the present schema in ascending order. Versions are the same in every store, so some are
/// not in this one; a step that was released is never changed.
const MIGRATIONS: Migrations<&str> = Migrations::new(&[
    Migration::new(1, 1, include_str!("../migrations/0001_outbox.sql")),
    Migration::new(3, 3, include_str!("../migrations/0003_handlers.sql")),
    Migration::new(4, 4, include_str!("../migrations/0004_heads.sql")),
    Migration::new(5, 4, include_str!("../migrations/0005_compatibility.sql")),
    Migration::new(6, 6, include_str!("../migrations/0006_undelayed.sql")),
    Migration::new(8, 6, include_str!("../migrations/0008_leases.sql")),
    Migration::new(9, 6, include_str!("../migrations/0009_replays.sql")),
]);

const TABLE: &str = include_str!("../sql/migration_table.sql");
const RECORD: &str = include_str!("../sql/migration_record.sql");
const RECORD_COMPATIBLE: &str = include_str!("../sql/migration_record_compatible.sql");

/// The SQL of a migration, and the record of it.
fn step(table: &TableName, migration: &Migration<&str>) -> String {
    let (record, from) = match migration.recorded() {
        None => (RECORD, 0),
        Some(from) => (RECORD_COMPATIBLE, from),
    };
    let record = render(table, record).replace("{version}", &migration.version.to_string());
    let record = record.replace("{compatible_from}", &from.to_string());
    format!("{}\n\n{record}", render(table, migration.sql))
}

/// All the SQL that runs on an empty database.
pub(crate) fn script(table: &TableName) -> String {
    let steps = MIGRATIONS.after(0).iter().map(|migration| step(table, migration));
    let script: Vec<String> = std::iter::once(render(table, TABLE)).chain(steps).collect();
    script.join("\n\n") + "\n"
}

/// Takes the steps that are missing. The open transaction holds the write lock, so that others wait and then find
/// nothing to do.
pub(crate) async fn migrate(
    connection: &mut SqliteConnection,
    table: &TableName,
    sql: &Sql,
) -> Result<Result<(), StoreError>, sqlx::Error> {
    if let Some(error) = foreign(connection, table, sql).await? {
        return Ok(Err(error));
    }
    raw_sql(AssertSqlSafe(render(table, TABLE))).execute(&mut *connection).await?;
    let missing = match MIGRATIONS.missing(table, version(connection, sql).await?) {
        Ok(missing) => missing,
        Err(problem) => return Ok(Err(StoreError::new(StoreErrorKind::Schema, operation::MIGRATE, problem))),
    };
    for migration in missing {
        raw_sql(AssertSqlSafe(step(table, migration))).execute(&mut *connection).await?;
    }
    statistics::forget_small(connection, table, sql).await?;
    Ok(Ok(()))
}

/// The error for something of a name this outbox takes that it did not make. It is not for us to use, let alone to change.
async fn foreign(
    connection: &mut SqliteConnection,
    table: &TableName,
    sql: &Sql,
) -> Result<Option<StoreError>, sqlx::Error> {
    let ours = query_scalar(AssertSqlSafe(Arc::clone(&sql.migration_ours))).bind(table.beside("migration"));
    let ours = ours.fetch_one(&mut *connection).await?;
    if ours && version(connection, sql).await?.applied > 0 {
        return Ok(None);
    }
    let event = table.event();
    let mut names: Vec<String> = INDEXES.iter().map(|index| format!("{event}_{index}")).collect();
    names.extend(["node", "partition"].map(|role| table.beside(role)));
    names.push(event.to_owned());
    if !ours {
        names.push(table.beside("migration"));
    }
    // The names are identifiers by their type, so they need no escaping.
    let names = format!("[\"{}\"]", names.join("\",\""));
    let taken: Option<(String, String)> =
        query_as(AssertSqlSafe(Arc::clone(&sql.migration_names))).bind(names).fetch_optional(connection).await?;
    Ok(taken.map(|(kind, name)| {
        let message = format!(
            "there is a {kind} `{name}` that Pillarbox did not make; rename that {kind}, or choose another name \
             for the event table"
        );
        StoreError::new(StoreErrorKind::Schema, operation::MIGRATE, message)
    }))
}

/// Verifies that the schema is one on which this release can run.
pub(crate) async fn check(
    connection: &mut SqliteConnection,
    table: &TableName,
    sql: &Sql,
) -> Result<Result<(), StoreError>, sqlx::Error> {
    if let Err(problem) = MIGRATIONS.check(table, version(connection, sql).await?) {
        return Ok(Err(StoreError::new(StoreErrorKind::Schema, operation::CHECK, problem)));
    }
    query(AssertSqlSafe(Arc::clone(&sql.check))).fetch_optional(connection).await?;
    Ok(Ok(()))
}

/// The error for a schema of which a table or an index is not there.
pub(crate) fn missing(table: &TableName) -> StoreError {
    let message = unmigrated(&format!("table `{table}` or one beside it is missing"));
    StoreError::new(StoreErrorKind::Schema, operation::CHECK, message)
}

async fn version(connection: &mut SqliteConnection, sql: &Sql) -> Result<SchemaVersion, sqlx::Error> {
    let applied = query_scalar(AssertSqlSafe(Arc::clone(&sql.migration_version))).fetch_one(&mut *connection).await?;
    // Older tables have no such column, and nobody asks.
    let compatible_from = if applied > MIGRATIONS.latest() {
        query_scalar(AssertSqlSafe(Arc::clone(&sql.migration_compatible))).fetch_one(connection).await?
    } else {
        None
    };
    Ok(SchemaVersion { applied, compatible_from })
}
