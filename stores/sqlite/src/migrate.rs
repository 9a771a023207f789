use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::TableName;
use pillarbox_core::store::refusal;
use pillarbox_core::store::schema::{Migration, Migrations, SchemaVersion};
use sqlx::{AssertSqlSafe, query_as, query_scalar, raw_sql};

use crate::error::Failure;
use crate::examine;
use crate::sql::{INDEXES, inbox_age, render};
use crate::statistics;
use crate::store::Session;

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
    Migration::new(13, 6, include_str!("../migrations/0013_audit.sql")),
    Migration::new(14, 6, include_str!("../migrations/0014_inbox.sql")),
    Migration::new(15, 6, include_str!("../migrations/0015_pause.sql")),
    Migration::new(16, 6, include_str!("../migrations/0016_failures.sql")),
    Migration::new(17, 6, include_str!("../migrations/0017_unique_key.sql")),
    Migration::new(19, 6, include_str!("../migrations/0019_delivered_as.sql")),
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

/// The statement that creates an index of this name, as the steps leave it.
pub(crate) fn create_index(table: &TableName, name: &str) -> Option<String> {
    let (script, named) = (script(table), format!("INDEX \"{name}\" ON "));
    let create = script.split(';').rfind(|statement| statement.contains(&named))?;
    let lines: Vec<&str> = create.lines().map(str::trim).filter(|line| !line.starts_with("--")).collect();
    Some(lines.join(" ").trim().to_owned() + ";")
}

/// True if nothing is missing, and nothing is to be mended: then nothing is written, and nobody is waited for.
pub(crate) async fn is_up_to_date(session: &mut Session<'_>) -> sqlx::Result<bool> {
    // If there are no tables yet, there is none of versions either.
    let Ok(version) = version(session).await else { return Ok(false) };
    let is_current = MIGRATIONS.missing(session.table, version).is_ok_and(|missing| missing.is_empty());
    Ok(is_current && check(session).await?.is_ok() && !statistics::are_small(session).await?)
}

/// Takes the steps that are missing. The open transaction holds the write lock, so that others wait and then find
/// nothing to do.
pub(crate) async fn migrate(session: &mut Session<'_>) -> Result<(), Failure> {
    let table = session.table;
    refuse_foreign(session).await?;
    raw_sql(AssertSqlSafe(render(table, TABLE))).execute(&mut *session.connection).await?;
    for migration in MIGRATIONS.missing(table, version(session).await?).map_err(unusable)? {
        raw_sql(AssertSqlSafe(step(table, migration))).execute(&mut *session.connection).await?;
    }
    statistics::forget_small(session).await?;
    check(session).await?
}

/// Refuses something of a name this outbox takes that it did not make. It is not for us to use, let alone to change.
async fn refuse_foreign(session: &mut Session<'_>) -> Result<(), Failure> {
    let table = session.table;
    let ours = query_scalar(session.sql.migration_ours.clone()).bind(table.beside("migration"));
    let ours = ours.fetch_one(&mut *session.connection).await?;
    if ours && version(session).await?.applied > 0 {
        return Ok(());
    }
    let event = table.event();
    let mut names: Vec<String> = INDEXES.iter().map(|index| format!("{event}_{index}")).collect();
    names.extend(table.all().into_iter().filter(|name| !ours || *name != table.beside("migration")));
    names.push(inbox_age(table));
    // The names are identifiers by their type, so they need no escaping.
    let names = format!("[\"{}\"]", names.join("\",\""));
    let taken: Option<(String, String)> =
        query_as(session.sql.migration_names.clone()).bind(names).fetch_optional(&mut *session.connection).await?;
    let Some((kind, name)) = taken else { return Ok(()) };
    Err(unusable(format!(
        "there is a {kind} `{name}` that Pillarbox did not make; rename that {kind}, or choose another name for the event \
         table"
    )))
}

/// Verifies that the schema is one on which this release can run, with all its tables and indexes.
pub(crate) async fn check(session: &mut Session<'_>) -> sqlx::Result<Result<(), Failure>> {
    let table = session.table;
    if let Err(problem) = MIGRATIONS.check(table, version(session).await?) {
        return Ok(Err(unusable(problem)));
    }
    let there: Vec<String> =
        query_scalar("SELECT lower(name) FROM sqlite_schema").fetch_all(&mut *session.connection).await?;
    let event = table.event();
    let mut names = table.all().to_vec();
    names.extend(examine::INDEXES.map(|index| format!("{event}_{index}")));
    names.push(inbox_age(table));
    names.retain(|name| !there.contains(&name.to_lowercase()));
    Ok(if names.is_empty() { Ok(()) } else { Err(unusable(refusal::lost(table, &names))) })
}

fn unusable(problem: String) -> Failure {
    Failure::Refused(StoreErrorKind::Schema, problem)
}

async fn version(session: &mut Session<'_>) -> sqlx::Result<SchemaVersion> {
    let applied = query_scalar(session.sql.migration_version.clone()).fetch_one(&mut *session.connection).await?;
    // Older tables have no such column, and nobody asks.
    let compatible_from = if applied > MIGRATIONS.latest() {
        query_scalar(session.sql.migration_compatible.clone()).fetch_one(&mut *session.connection).await?
    } else {
        None
    };
    Ok(SchemaVersion { applied, compatible_from })
}
