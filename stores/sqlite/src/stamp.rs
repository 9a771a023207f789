use std::sync::Arc;

use sqlx::{AssertSqlSafe, SqliteConnection, query};

use crate::json;
use crate::sql::Sql;

/// Writes partitions into rows that have none.
pub(crate) async fn stamp(connection: &mut SqliteConnection, sql: &Sql, rows: &[(i64, u8)]) -> Result<(), sqlx::Error> {
    query(AssertSqlSafe(Arc::clone(&sql.stamp))).bind(json::stamps(rows)).execute(connection).await?;
    Ok(())
}

/// Takes the due time, which has come, from rows that were never tried.
pub(crate) async fn ripen(connection: &mut SqliteConnection, sql: &Sql, seqs: &[i64]) -> Result<(), sqlx::Error> {
    let seqs = json::array(seqs.iter().copied());
    query(AssertSqlSafe(Arc::clone(&sql.ripen))).bind(seqs).execute(connection).await?;
    Ok(())
}
