use std::sync::Arc;

use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::{Fetch, Fetched, FetchedRow, RowId};
use sqlx::{AssertSqlSafe, SqliteConnection, query};

use crate::ownership::is_registered;
use crate::sql::Sql;
use crate::{fetch, json};

/// Answers a claim that finds nothing, which takes no write: an idle node should not keep the others from writing.
pub(crate) async fn probe(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
    wanted: &Fetch,
) -> Result<Option<Fetched>, sqlx::Error> {
    if !is_registered(connection, sql, node).await? {
        return Ok(Some(Fetched::default()));
    }
    let one = Fetch { limit: 1, ..wanted.clone() };
    let found = fetch::fetch(connection, sql, Some(node), &one).await?;
    Ok(found.rows.is_empty().then_some(found))
}

/// Takes rows inside the open transaction, which holds the write lock, so that nobody takes them in between.
///
/// They are read before they are changed, because the caller wants to know who held them.
pub(crate) async fn claim(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
    wanted: &Fetch,
) -> Result<Fetched, sqlx::Error> {
    if !is_registered(connection, sql, node).await? {
        return Ok(Fetched::default());
    }
    let found = fetch::fetch(connection, sql, Some(node), wanted).await?;
    let seqs = json::array(found.rows.iter().map(FetchedRow::seq));
    query(AssertSqlSafe(Arc::clone(&sql.claim))).bind(node.as_str()).bind(seqs).execute(connection).await?;
    Ok(found)
}

/// Gives up what the node holds of these rows.
pub(crate) async fn release(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
    rows: &[RowId],
) -> Result<(), sqlx::Error> {
    let release = query(AssertSqlSafe(Arc::clone(&sql.release))).bind(node.as_str());
    let release = release.bind(json::array(rows.iter().map(|row| row.seq)));
    release.bind(json::events(rows)).execute(connection).await?;
    Ok(())
}
