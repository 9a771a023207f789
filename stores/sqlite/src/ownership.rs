use pillarbox_core::store::{operation, refusal};
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::ownership::{Acquired, LeaseMark, Mode, NodeId, Renewal};
use pillarbox_core::store::{Judged, LeaseClock, NodeStatus};
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
    node: &NodeId,
    mode: Mode,
) -> Result<Option<StoreError>, sqlx::Error> {
    let is_other = |other: &NodeStatus| {
        other.node != *node && !other.mode.parse().is_ok_and(|known: Mode| mode.coexists_with(known))
    };
    let judged = judge(connection, sql, clock).await?;
    if let Some(other) = judged.alive.iter().find(|other| is_other(other)) {
        let message = refusal::other_mode(other.node.as_str(), &other.mode, mode);
        return Ok(Some(StoreError::new(StoreErrorKind::IncompatibleMode, operation::JOIN, message)));
    }
    // As long as its row is there, a node may renew.
    let ended: Vec<NodeStatus> = judged.ended.into_iter().filter(is_other).collect();
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
    let went_back = last.zip(found).is_some_and(|(last, found)| LeaseMark(found) < last);
    Ok(if went_back { Renewal::WentBack } else { Renewal::Lost })
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
    let seen = Seen::read(connection, sql, node).await?;
    Ok(if seen.stale() { None } else { seen.answer(node) })
}

/// Clears away what has expired and takes what is free.
pub(crate) async fn acquire(
    connection: &mut SqliteConnection,
    sql: &Sql,
    clock: &LeaseClock,
    node: &NodeId,
) -> Result<Acquired, sqlx::Error> {
    clear_ended(connection, sql, clock).await?;
    let seen = Seen::read(connection, sql, node).await?;
    if let Some(answer) = seen.answer(node) {
        return Ok(answer);
    }
    query(AssertSqlSafe(Arc::clone(&sql.owner_take))).bind(node.as_str()).execute(connection).await?;
    Ok(Acquired::Owner { epoch: seen.epoch + 1, unclean: seen.died })
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
struct Seen {
    owner: Option<String>,
    epoch: i64,
    expires_in: Option<i64>,
    /// True if the last owner of any partition died.
    died: bool,
    any_expired: bool,
    registered: bool,
}

impl Seen {
    async fn read(connection: &mut SqliteConnection, sql: &Sql, node: &NodeId) -> Result<Self, sqlx::Error> {
        let probe = query_as(AssertSqlSafe(Arc::clone(&sql.owner_probe))).bind(node.as_str());
        let (owner, epoch, expires_in, died, any_expired, registered) = probe.fetch_one(connection).await?;
        Ok(Self { owner, epoch, expires_in, died, any_expired, registered })
    }

    /// True if something is to be cleared away: a node whose lease has ended, or the ownership of one that is gone.
    fn stale(&self) -> bool {
        self.any_expired || self.owner.is_some() && self.expires_in.is_none()
    }

    /// The answer, unless the partitions are free for this node to take.
    fn answer(&self, node: &NodeId) -> Option<Acquired> {
        if !self.registered {
            return Some(Acquired::Lost);
        }
        let owner = self.owner.as_deref()?;
        if owner == node.as_str() {
            return Some(Acquired::Owner { epoch: self.epoch, unclean: false });
        }
        let expires_in = micros(self.expires_in.unwrap_or(0));
        Some(Acquired::Standby { owner: NodeId::from_stored(owner), expires_in })
    }
}

/// A span of time as the database counts it. Half the range of an integer, some 146,000 years, leaves room to add it to
/// the present.
pub(crate) fn span(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX).min(i64::MAX / 2)
}
