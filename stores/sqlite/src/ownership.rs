use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::ownership::{Acquired, Mode, NodeId, Partitions};
use sqlx::{AssertSqlSafe, SqliteConnection, query, query_as, query_scalar};

use crate::fetch::micros;
use crate::share;
use crate::sql::Sql;

/// Fails if a living node's mode cannot run beside `mode`.
pub(crate) async fn check_mode(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
    mode: Mode,
) -> Result<Option<StoreError>, sqlx::Error> {
    let others: Vec<(String, String)> =
        query_as(AssertSqlSafe(Arc::clone(&sql.node_modes))).bind(node.as_str()).fetch_all(connection).await?;
    let incompatible =
        others.into_iter().find(|(_, other)| !other.parse().is_ok_and(|other| mode.coexists_with(other)));
    Ok(incompatible.map(|(other, its_mode)| {
        let message = format!(
            "node {other} runs in mode {its_mode}, beside which mode {mode} cannot run; stop it, or start this node in mode \
             {its_mode}"
        );
        StoreError::new(StoreErrorKind::IncompatibleMode, "join the outbox", message)
    }))
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

/// Extends a lease that has not ended and returns whether there was one.
pub(crate) async fn renew(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
    lease: Duration,
) -> Result<bool, sqlx::Error> {
    let renew = query(AssertSqlSafe(Arc::clone(&sql.node_renew)));
    Ok(renew.bind(node.as_str()).bind(span(lease)).execute(connection).await?.rows_affected() > 0)
}

/// Frees what a node owns and unregisters it.
pub(crate) async fn leave(connection: &mut SqliteConnection, sql: &Sql, node: &NodeId) -> Result<(), sqlx::Error> {
    share::give(connection, sql, node, Partitions::ALL).await?;
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
    node: &NodeId,
) -> Result<Acquired, sqlx::Error> {
    clear_expired(connection, sql).await?;
    let seen = Seen::read(connection, sql, node).await?;
    if let Some(answer) = seen.answer(node) {
        return Ok(answer);
    }
    query(AssertSqlSafe(Arc::clone(&sql.owner_take))).bind(node.as_str()).execute(connection).await?;
    Ok(Acquired::Owner { epoch: seen.epoch + 1, unclean: seen.died })
}

/// Removes the nodes whose lease has ended, frees their partitions, and returns how many nodes there were.
pub(crate) async fn clear_expired(connection: &mut SqliteConnection, sql: &Sql) -> Result<u64, sqlx::Error> {
    let nodes = query(AssertSqlSafe(Arc::clone(&sql.node_expire))).execute(&mut *connection).await?.rows_affected();
    query(AssertSqlSafe(Arc::clone(&sql.owner_free))).execute(connection).await?;
    Ok(nodes)
}

/// Whether the node is registered: it has not been cleared away, though its lease may have ended.
pub(crate) async fn is_registered(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
) -> Result<bool, sqlx::Error> {
    query_scalar(AssertSqlSafe(Arc::clone(&sql.node_registered))).bind(node.as_str()).fetch_one(connection).await
}

/// Whether the node owns the partitions.
pub(crate) async fn is_owner(connection: &mut SqliteConnection, sql: &Sql, node: &NodeId) -> Result<bool, sqlx::Error> {
    query_scalar(AssertSqlSafe(Arc::clone(&sql.owner_is))).bind(node.as_str()).fetch_one(connection).await
}

/// Who owns the partitions, as one statement sees it. Where one node owns all of them, partition 0 stands for the others.
struct Seen {
    owner: Option<String>,
    epoch: i64,
    expires_in: Option<i64>,
    /// Whether the last owner of any partition died.
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

    /// Whether something is to be cleared away: a node whose lease has ended, or the ownership of one that is gone.
    fn stale(&self) -> bool {
        self.any_expired || self.owner.is_some() && self.expires_in.is_none()
    }

    /// What to answer, unless the partitions are free for this node to take.
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
