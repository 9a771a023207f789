use std::sync::Arc;

use pillarbox_core::store::TableName;
use sqlx::{AssertSqlSafe, SqliteConnection, query, query_scalar, raw_sql};

use crate::sql::Sql;

/// Forgets statistics that `ANALYZE` or `PRAGMA optimize` made of the event table while it was nearly empty.
///
/// SQLite believes them until they are made again, and reads a table of which it expects a few dozen rows from end to end
/// rather than look rows up by their key. Years of delivered events later, every batch of verdicts would read them all.
/// Without statistics it expects a large table, which is what the statements are written for.
pub(crate) async fn forget_small(
    connection: &mut SqliteConnection,
    table: &TableName,
    sql: &Sql,
) -> Result<(), sqlx::Error> {
    let there: bool =
        query_scalar(AssertSqlSafe(Arc::clone(&sql.statistics_there))).fetch_one(&mut *connection).await?;
    if !there {
        return Ok(());
    }
    let forget = query(AssertSqlSafe(Arc::clone(&sql.statistics_forget))).bind(table.event());
    if forget.execute(&mut *connection).await?.rows_affected() > 0 {
        // What was read of them when the connection was opened is forgotten by reading them again.
        raw_sql("ANALYZE sqlite_schema").execute(connection).await?;
    }
    Ok(())
}
