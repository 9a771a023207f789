use std::time::Duration;

use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::ownership::{Acquired, LeaseMark, NodeId, NodeMode, Owner, Renewal, Takeover};
use pillarbox_core::store::{NodeFigures, NodeStatus, NodesByLease};
use sqlx::{query, query_as, query_scalar};
use tokio::time::Instant;

use crate::admin::overview;
use crate::error::Failure;
use crate::fetch::micros;
use crate::statistics;
use crate::store::Session;

/// Registers a node. Fails if the mode of a living node cannot run beside `mode`, and evicts such nodes whose lease has
/// ended.
pub(crate) async fn join(
    session: &mut Session<'_>,
    node: &NodeId,
    mode: NodeMode,
    lease: Duration,
) -> Result<(), Failure> {
    let judged = judge(session).await?;
    let ended = judged
        .nodes_to_evict_for(mode)
        .map_err(|problem| Failure::Refused(StoreErrorKind::IncompatibleMode, problem))?;
    if !ended.is_empty() {
        clear(session, &ended).await?;
    }
    let join = query(session.sql.join.clone());
    join.bind(node.as_str()).bind(mode.name()).bind(span(lease)).execute(&mut *session.connection).await?;
    // A program may have made some since the migration: SQLite advises `PRAGMA optimize` before a connection is closed.
    Ok(statistics::forget_small(session).await?)
}

/// Extends the lease of a node that is registered, unless its row is older than `last`.
pub(crate) async fn renew(
    session: &mut Session<'_>,
    node: &NodeId,
    lease: Duration,
    last: Option<LeaseMark>,
    figures: Option<&NodeFigures>,
) -> sqlx::Result<Renewal> {
    let renew = query_scalar(session.sql.renew.clone()).bind(node.as_str()).bind(span(lease));
    let renewed: Option<i64> = renew
        .bind(last.map(|last| last.0))
        .bind(figures.map(NodeFigures::column))
        .fetch_optional(&mut *session.connection)
        .await?;
    if let Some(mark) = renewed.map(LeaseMark) {
        return Ok(Renewal::Renewed { mark });
    }
    let found = query_scalar(session.sql.lease_end.clone()).bind(node.as_str());
    let found: Option<i64> = found.fetch_optional(&mut *session.connection).await?;
    Ok(Renewal::refused(found.map(LeaseMark), last))
}

/// Frees what a node owns and unregisters it.
pub(crate) async fn leave(session: &mut Session<'_>, node: &NodeId) -> sqlx::Result<()> {
    query(session.sql.leave_partitions.clone()).bind(node.as_str()).execute(&mut *session.connection).await?;
    query(session.sql.leave.clone()).bind(node.as_str()).execute(&mut *session.connection).await?;
    Ok(())
}

/// Answers an attempt to become the owner if that takes no write, as it does for a standby most of the time.
pub(crate) async fn probe(session: &mut Session<'_>, node: &NodeId) -> sqlx::Result<Option<Acquired>> {
    Ok(takeover(session, node).await?.settled())
}

/// Evicts what has expired and takes what is free.
pub(crate) async fn acquire(session: &mut Session<'_>, node: &NodeId) -> sqlx::Result<Acquired> {
    evict_expired(session).await?;
    let found = takeover(session, node).await?;
    if let Some(answer) = found.answer() {
        return Ok(answer);
    }
    query(session.sql.take_table.clone()).bind(node.as_str()).execute(&mut *session.connection).await?;
    Ok(found.taken())
}

/// Removes the nodes whose lease has ended, and frees their partitions.
pub(crate) async fn evict_expired(session: &mut Session<'_>) -> sqlx::Result<NodesByLease> {
    let judged = judge(session).await?;
    clear(session, &judged.ended).await?;
    Ok(judged)
}

async fn judge(session: &mut Session<'_>) -> sqlx::Result<NodesByLease> {
    let asked = Instant::now();
    let (nodes, now) = overview::statuses(session).await?;
    Ok(now.map(|now| session.lease_clock.judge(nodes, now, asked)).unwrap_or_default())
}

async fn clear(session: &mut Session<'_>, nodes: &[NodeStatus]) -> sqlx::Result<()> {
    for node in nodes {
        delete(session, node).await?;
    }
    query(session.sql.free_abandoned.clone()).execute(&mut *session.connection).await?;
    Ok(())
}

/// Removes a node that has not renewed its lease since it was seen, and returns whether it did.
async fn delete(session: &mut Session<'_>, seen: &NodeStatus) -> sqlx::Result<bool> {
    let delete = query(session.sql.evict.clone()).bind(seen.node.as_str());
    Ok(delete.bind(seen.expires_at.as_micros()).execute(&mut *session.connection).await?.rows_affected() > 0)
}

/// Evicts a node that has not renewed its lease since it was seen, and returns whether it did.
pub(crate) async fn evict(session: &mut Session<'_>, seen: &NodeStatus) -> sqlx::Result<bool> {
    let evicted = delete(session, seen).await?;
    query(session.sql.free_abandoned.clone()).execute(&mut *session.connection).await?;
    Ok(evicted)
}

/// Returns true if the node is registered: it has not been evicted, though its lease may have ended.
pub(crate) async fn is_registered(session: &mut Session<'_>, node: &NodeId) -> sqlx::Result<bool> {
    query_scalar(session.sql.node_registered.clone()).bind(node.as_str()).fetch_one(&mut *session.connection).await
}

/// Returns true if the node owns the partitions.
pub(crate) async fn is_owner(session: &mut Session<'_>, node: &NodeId) -> sqlx::Result<bool> {
    query_scalar(session.sql.owner_is.clone()).bind(node.as_str()).fetch_one(&mut *session.connection).await
}

/// The owner of the partitions, as one statement sees it. If one node owns all of them, partition 0 stands for the others.
async fn takeover(session: &mut Session<'_>, node: &NodeId) -> sqlx::Result<Takeover> {
    type Row = (Option<String>, i64, Option<i64>, bool, bool, bool);
    let probe = query_as(session.sql.probe.clone()).bind(node.as_str());
    let (owner, epoch, expires_in, unclean, any_expired, registered): Row =
        probe.fetch_one(&mut *session.connection).await?;
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
