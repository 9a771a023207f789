use std::sync::Arc;

use pillarbox_core::event::EventId;
use pillarbox_core::store::RowId;
use sqlx::{AssertSqlSafe, SqliteConnection, query, query_as};

use crate::json;
use crate::sql::Sql;

/// Writes partitions into rows that have none.
pub(crate) async fn assign_partitions(
    connection: &mut SqliteConnection,
    sql: &Sql,
    rows: &[(RowId, u8)],
) -> Result<(), sqlx::Error> {
    query(AssertSqlSafe(Arc::clone(&sql.assign_partitions))).bind(json::partitions(rows)).execute(connection).await?;
    Ok(())
}

/// Takes the due time from pending rows whose time has come.
pub(crate) async fn promote_due(
    connection: &mut SqliteConnection,
    sql: &Sql,
    rows: &[RowId],
) -> Result<(), sqlx::Error> {
    let promote_due =
        query(AssertSqlSafe(Arc::clone(&sql.promote_due))).bind(json::array(rows.iter().map(|row| row.seq)));
    promote_due.bind(json::events(rows)).execute(connection).await?;
    Ok(())
}

/// The same query for the commit of a user, who binds nothing.
pub(crate) fn identify_sql(sql: &Sql, seqs: &[i64]) -> String {
    sql.identify.replace("?1", &format!("'{}'", json::array(seqs.iter().copied())))
}

/// The rows that stand at these places.
pub(crate) async fn identify(
    connection: &mut SqliteConnection,
    sql: &Sql,
    seqs: &[i64],
) -> Result<Vec<RowId>, sqlx::Error> {
    let identify = query_as(AssertSqlSafe(Arc::clone(&sql.identify))).bind(json::array(seqs.iter().copied()));
    let rows: Vec<(i64, String, Option<String>)> = identify.fetch_all(connection).await?;
    let row = |(seq, event_id, handler): (i64, String, Option<String>)| RowId {
        seq,
        event_id: EventId::from_stored(&event_id),
        handler: handler.map(String::into_boxed_str),
    };
    Ok(rows.into_iter().map(row).collect())
}
