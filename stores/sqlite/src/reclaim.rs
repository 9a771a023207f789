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
    let seen = Seen::read(connection, sql, node).await?;
    if seen.any_expired {
        return Ok(None);
    }
    if thorough && query_scalar(AssertSqlSafe(Arc::clone(&sql.reclaim_orphans))).fetch_one(connection).await? {
        return Ok(None);
    }
    Ok(Some(seen.answer(0)))
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
    let reclaimed = Seen::read(connection, sql, node).await?.answer(freed);
    let next_expiry = reclaimed.next_expiry.into_iter().chain(judged.spared_for).min();
    Ok(Reclaimed { next_expiry, ..reclaimed })
}

/// The nodes, as one statement sees them.
struct Seen {
    registered: bool,
    any_expired: bool,
    next_expiry: Option<i64>,
}

impl Seen {
    async fn read(connection: &mut SqliteConnection, sql: &Sql, node: &NodeId) -> Result<Self, sqlx::Error> {
        let probe = query_as(AssertSqlSafe(Arc::clone(&sql.reclaim_probe))).bind(node.as_str());
        let (registered, any_expired, next_expiry) = probe.fetch_one(connection).await?;
        Ok(Self { registered, any_expired, next_expiry })
    }

    fn answer(&self, freed: u64) -> Reclaimed {
        Reclaimed { registered: self.registered, freed, next_expiry: self.next_expiry.map(micros) }
    }
}
