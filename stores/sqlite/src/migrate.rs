use std::sync::Arc;

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::store::TableName;
use sqlx::{AssertSqlSafe, SqliteConnection, query, query_as, query_scalar, raw_sql};

use crate::sql::{INDEXES, Sql, render};
use crate::statistics;

/// The steps from an empty database to the present schema, and the version each leads to. Versions are the same in every
/// store, so some are not in this one; a step that was released is never changed.
const STEPS: &[(i64, &str)] = &[
    (1, include_str!("../migrations/0001_outbox.sql")),
    (3, include_str!("../migrations/0003_handlers.sql")),
    (4, include_str!("../migrations/0004_heads.sql")),
];

const TABLE: &str = include_str!("../sql/migration_table.sql");
const RECORD: &str = include_str!("../sql/migration_record.sql");

/// All the SQL that runs on an empty database.
pub(crate) fn script(table: &TableName) -> String {
    let steps = STEPS.iter().map(|(version, step)| render_step(table, *version, step));
    let script: Vec<String> = std::iter::once(render(table, TABLE)).chain(steps).collect();
    script.join("\n\n") + "\n"
}

fn render_step(table: &TableName, version: i64, step: &str) -> String {
    format!("{}\n\n{}", render(table, step), render(table, RECORD).replace("{version}", &version.to_string()))
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
    let present = version(connection, sql).await?;
    if present > latest() {
        return Ok(Err(newer("migrate", present)));
    }
    for (version, step) in STEPS.iter().filter(|(version, _)| *version > present) {
        raw_sql(AssertSqlSafe(render_step(table, *version, step))).execute(&mut *connection).await?;
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
    if ours && version(connection, sql).await? > 0 {
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
        StoreError::new(StoreErrorKind::Schema, "migrate", message)
    }))
}

/// Verifies that the schema is the one this release needs.
pub(crate) async fn check(connection: &mut SqliteConnection, sql: &Sql) -> Result<Result<(), StoreError>, sqlx::Error> {
    let present = version(connection, sql).await?;
    if present > latest() {
        return Ok(Err(newer("check the schema", present)));
    }
    if present < latest() {
        let needed = latest();
        let message = format!(
            "the schema has version {present}, this release needs {needed}; run migrate() or `pillarbox migrate`"
        );
        return Ok(Err(StoreError::new(StoreErrorKind::Schema, "check the schema", message)));
    }
    query(AssertSqlSafe(Arc::clone(&sql.check))).fetch_optional(connection).await?;
    Ok(Ok(()))
}

/// The error for a schema of which a table or an index is not there.
pub(crate) fn missing(table: &TableName) -> StoreError {
    let message = format!("table `{table}` or one beside it is missing; run migrate() or `pillarbox migrate`");
    StoreError::new(StoreErrorKind::Schema, "check the schema", message)
}

async fn version(connection: &mut SqliteConnection, sql: &Sql) -> Result<i64, sqlx::Error> {
    query_scalar(AssertSqlSafe(Arc::clone(&sql.migration_version))).fetch_one(connection).await
}

fn latest() -> i64 {
    STEPS.last().map_or(0, |(version, _)| *version)
}

fn newer(operation: &'static str, present: i64) -> StoreError {
    let message = format!(
        "the schema has version {present}, newer than the {} this release knows; use a release that is at least as new",
        latest()
    );
    StoreError::new(StoreErrorKind::Schema, operation, message)
}
