use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::ownership::{Acquired, LeaseMark, Mode, NodeId, Owner, Renewal, Takeover};
use pillarbox_core::store::{Judged, LeaseClock, NodeStatus, operation};
use sqlx::{AssertSqlSafe, SqliteConnection, query, query_as, query_scalar};
use tokio::time::Instant;

use crate::fetch::micros;
use crate::sql::Sql;
use crate::upkeep::overview;

/// Fails if the mode of a living node cannot run beside `mode`, and clears such nodes away whose lease has ended.
pub(crate) async fn check_mode(
    connection: &mut SqliteConnection,
    sql: &Sql,
    clock: &LeaseClock,
    mode: Mode,
) -> Result<Option<StoreError>, sqlx::Error> {
    let ended = match judge(connection, sql, clock).await?.admit(mode) {
        Ok(ended) => ended,
        Err(problem) => {
            return Ok(Some(StoreError::new(StoreErrorKind::IncompatibleMode, operation::JOIN, problem)));
        }
    };
    if !ended.is_empty() {
        clear(connection, sql, &ended).await?;
    }
    Ok(None)
}

/// Registers a node.
pub(crate) async fn join(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
    mode: Mode,
    lease: Duration,
) -> Result<(), sqlx::Error> {
    let join = query(AssertSqlSafe(Arc::clone(&sql.node_join)));
    join.bind(node.as_str()).bind(mode.name()).bind(span(lease)).execute(connection).await?;
    Ok(())
}

/// Extends the lease of a node that is registered, unless its row is older than `last`.
pub(crate) async fn renew(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
    lease: Duration,
    last: Option<LeaseMark>,
) -> Result<Renewal, sqlx::Error> {
    let renew = query_scalar(AssertSqlSafe(Arc::clone(&sql.node_renew))).bind(node.as_str()).bind(span(lease));
    let renewed: Option<i64> = renew.bind(last.map(|last| last.0)).fetch_optional(&mut *connection).await?;
    if let Some(mark) = renewed.map(LeaseMark) {
        return Ok(Renewal::Renewed { mark });
    }
    let found = query_scalar(AssertSqlSafe(Arc::clone(&sql.node_lease))).bind(node.as_str());
    let found: Option<i64> = found.fetch_optional(connection).await?;
    Ok(Renewal::refused(found.map(LeaseMark), last))
}

/// Frees what a node owns and unregisters it.
pub(crate) async fn leave(connection: &mut SqliteConnection, sql: &Sql, node: &NodeId) -> Result<(), sqlx::Error> {
    let free = query(AssertSqlSafe(Arc::clone(&sql.leave_partitions)));
    free.bind(node.as_str()).execute(&mut *connection).await?;
    query(AssertSqlSafe(Arc::clone(&sql.node_leave))).bind(node.as_str()).execute(connection).await?;
    Ok(())
}

/// Answers an attempt to become the owner if that takes no write, as it does for a standby most of the time.
pub(crate) async fn probe(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
) -> Result<Option<Acquired>, sqlx::Error> {
    Ok(takeover(connection, sql, node).await?.settled())
}

/// Clears away what has expired and takes what is free.
pub(crate) async fn acquire(
    connection: &mut SqliteConnection,
    sql: &Sql,
    clock: &LeaseClock,
    node: &NodeId,
) -> Result<Acquired, sqlx::Error> {
    clear_ended(connection, sql, clock).await?;
    let found = takeover(connection, sql, node).await?;
    if let Some(answer) = found.answer() {
        return Ok(answer);
    }
    query(AssertSqlSafe(Arc::clone(&sql.owner_take))).bind(node.as_str()).execute(connection).await?;
    Ok(found.taken())
}

/// Removes the nodes whose lease has ended, and frees their partitions.
pub(crate) async fn clear_ended(
    connection: &mut SqliteConnection,
    sql: &Sql,
    clock: &LeaseClock,
) -> Result<Judged, sqlx::Error> {
    let judged = judge(connection, sql, clock).await?;
    clear(connection, sql, &judged.ended).await?;
    Ok(judged)
}

async fn judge(connection: &mut SqliteConnection, sql: &Sql, clock: &LeaseClock) -> Result<Judged, sqlx::Error> {
    let asked = Instant::now();
    let (nodes, now) = overview::statuses(connection, sql).await?;
    Ok(now.map(|now| clock.judge(nodes, now, asked)).unwrap_or_default())
}

async fn clear(connection: &mut SqliteConnection, sql: &Sql, nodes: &[NodeStatus]) -> Result<(), sqlx::Error> {
    for node in nodes {
        delete(connection, sql, node).await?;
    }
    query(AssertSqlSafe(Arc::clone(&sql.owner_free))).execute(connection).await?;
    Ok(())
}

/// Removes a node that has not renewed its lease since it was seen, and returns whether it did.
async fn delete(connection: &mut SqliteConnection, sql: &Sql, seen: &NodeStatus) -> Result<bool, sqlx::Error> {
    let delete = query(AssertSqlSafe(Arc::clone(&sql.node_evict))).bind(seen.node.as_str());
    Ok(delete.bind(seen.expires_at.as_micros()).execute(connection).await?.rows_affected() > 0)
}

/// Clears away a node that has not renewed its lease since it was seen, and returns whether it did.
pub(crate) async fn evict(
    connection: &mut SqliteConnection,
    sql: &Sql,
    seen: &NodeStatus,
) -> Result<bool, sqlx::Error> {
    let evicted = delete(connection, sql, seen).await?;
    query(AssertSqlSafe(Arc::clone(&sql.owner_free))).execute(connection).await?;
    Ok(evicted)
}

/// Returns true if the node is registered: it has not been cleared away, though its lease may have ended.
pub(crate) async fn is_registered(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
) -> Result<bool, sqlx::Error> {
    query_scalar(AssertSqlSafe(Arc::clone(&sql.node_registered))).bind(node.as_str()).fetch_one(connection).await
}

/// Returns true if the node owns the partitions.
pub(crate) async fn is_owner(connection: &mut SqliteConnection, sql: &Sql, node: &NodeId) -> Result<bool, sqlx::Error> {
    query_scalar(AssertSqlSafe(Arc::clone(&sql.owner_is))).bind(node.as_str()).fetch_one(connection).await
}

/// The owner of the partitions, as one statement sees it. Where one node owns all of them, partition 0 stands for the others.
async fn takeover(connection: &mut SqliteConnection, sql: &Sql, node: &NodeId) -> Result<Takeover, sqlx::Error> {
    type Row = (Option<String>, i64, Option<i64>, bool, bool, bool);
    let probe = query_as(AssertSqlSafe(Arc::clone(&sql.owner_probe))).bind(node.as_str());
    let (owner, epoch, expires_in, unclean, any_expired, registered): Row = probe.fetch_one(connection).await?;
    let stale = any_expired || owner.is_some() && expires_in.is_none();
    let owner = match owner {
        None => Owner::Nobody,
        Some(owner) if owner == node.as_str() => Owner::Itself,
        Some(owner) => Owner::Other(NodeId::from_stored(&owner), micros(expires_in.unwrap_or(0))),
    };
    Ok(Takeover { registered, stale, owner, epoch, unclean })
}

/// A span of time as the database counts it. Half the range of an integer, some 146,000 years, leaves room to add it to
/// the present.
pub(crate) fn span(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX).min(i64::MAX / 2)
}
