use std::sync::Arc;

use pillarbox_core::ownership::{NodeId, Reclaimed};
use pillarbox_core::store::LeaseClock;
use sqlx::{AssertSqlSafe, SqliteConnection, query, query_as, query_scalar};

use crate::fetch::micros;
use crate::ownership;
use crate::sql::Sql;

/// Answers if there is nothing to free, which takes no write: a look at many rows should not keep others from writing.
pub(crate) async fn probe(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
    thorough: bool,
) -> Result<Option<Reclaimed>, sqlx::Error> {
    let (found, any_expired) = membership(connection, sql, node).await?;
    if any_expired {
        return Ok(None);
    }
    if thorough && query_scalar(AssertSqlSafe(Arc::clone(&sql.reclaim_orphans))).fetch_one(connection).await? {
        return Ok(None);
    }
    Ok(Some(found))
}

/// Clears away the nodes that have expired, and frees what nodes hold that are not registered.
///
/// The open transaction holds the write lock, so that none can join in between.
pub(crate) async fn reclaim(
    connection: &mut SqliteConnection,
    sql: &Sql,
    clock: &LeaseClock,
    node: &NodeId,
    thorough: bool,
) -> Result<Reclaimed, sqlx::Error> {
    let judged = ownership::clear_ended(connection, sql, clock).await?;
    let mut freed = 0;
    if thorough || !judged.ended.is_empty() {
        let free = query(AssertSqlSafe(Arc::clone(&sql.reclaim_free)));
        freed = free.execute(&mut *connection).await?.rows_affected();
    }
    let (found, _) = membership(connection, sql, node).await?;
    Ok(Reclaimed { freed, next_expiry: judged.next_expiry(found.next_expiry), ..found })
}

/// The nodes, as one statement sees them, and whether the lease of any has ended.
async fn membership(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
) -> Result<(Reclaimed, bool), sqlx::Error> {
    let probe = query_as(AssertSqlSafe(Arc::clone(&sql.reclaim_probe))).bind(node.as_str());
    let (registered, any_expired, next_expiry): (bool, bool, Option<i64>) = probe.fetch_one(connection).await?;
    Ok((Reclaimed { registered, freed: 0, next_expiry: next_expiry.map(micros) }, any_expired))
}
