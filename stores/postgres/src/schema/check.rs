use deadpool_postgres::Transaction;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::store::schema::{Migration, SchemaVersion};
use pillarbox_core::store::{TableName, refusal};
use tokio_postgres::types::Type;

use super::versions::{MIGRATIONS, Steps, tables};
use crate::compatible;
use crate::error::Failure;
use crate::sql::qualified;
use crate::store::Inner;

const TABLE_EXISTS: &str = include_str!("../../sql/table_exists.sql");

/// Verifies that the server has what is relied on, and that every table is there, of the version this release needs, and of a kind
/// that can be read.
pub(crate) async fn check(store: &Inner) -> Result<(), Failure> {
    let table = &store.table;
    let names = tables(table);
    let mut session = store.sessions.session().await?;
    let transaction = session.transaction().await?;
    compatible::check_server(&transaction).await?;
    let found = found(&transaction, table).await?;
    // Tables of an older version lack some, which is not what there is to say of them.
    if found.applied > 0 {
        MIGRATIONS.check(table, found).map_err(unusable)?;
    }
    let missing = "SELECT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL";
    let missing = transaction.query_typed(missing, &[(&names, Type::TEXT_ARRAY)]).await?;
    let missing = missing.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
    if !missing.is_empty() {
        let problem =
            if found.applied > 0 { refusal::lost(table, &missing) } else { refusal::missing_tables(&missing) };
        return Err(Failure::Refused(StoreErrorKind::Schema, problem.replace('"', "")));
    }
    MIGRATIONS.check(table, found).map_err(unusable)?;
    compatible::check_tables(&transaction, &names).await?;
    transaction.commit().await?;
    session.finish();
    Ok(())
}

/// The migrations that tables of this version lack.
pub(super) fn missing(table: &TableName, found: SchemaVersion) -> Result<&'static [Migration<Steps>], Failure> {
    MIGRATIONS.missing(table, found).map_err(unusable)
}

fn unusable(problem: String) -> Failure {
    Failure::Refused(StoreErrorKind::Schema, problem)
}

/// The version of the tables that are there.
pub(super) async fn found(transaction: &Transaction<'_>, table: &TableName) -> Result<SchemaVersion, Failure> {
    // Read from the catalog itself: `to_regclass` may answer from a cache that does not know yet what another process
    // committed while this transaction waited for the lock.
    let (migration, schema) = (table.beside("migration"), table.schema());
    if transaction.query_typed(TABLE_EXISTS, &[(&migration, Type::TEXT), (&schema, Type::TEXT)]).await?.is_empty() {
        return Ok(SchemaVersion::NONE);
    }
    let name = qualified(table, &migration);
    let newest = async |column: &str| -> Result<Option<i64>, Failure> {
        let newest = format!("SELECT \"{column}\"::bigint FROM {name} ORDER BY \"version\" DESC LIMIT 1");
        let rows = transaction.query_typed(&newest, &[]).await?;
        Ok(rows.first().map_or(Ok(None), |row| row.try_get(0))?)
    };
    let applied = newest("version").await?.unwrap_or(0);
    // Older tables have no such column, and nobody asks.
    let compatible_from = if applied > MIGRATIONS.latest() { newest("compatible_from").await? } else { None };
    Ok(SchemaVersion { applied, compatible_from })
}
