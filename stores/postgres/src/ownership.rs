//! Membership of nodes, and the right to deliver.
//!
//! ```text
//!             join            acquire: nobody owns          renew, settle: still there
//!   (none) ─────────▶ member ─────────────────────▶ owner ──┐
//!                      │  ▲  acquire: another lives  │ ▲────┘
//!                      │  └──────────── standby ◀────┘
//!                      ▼
//!            leave, or any node's acquire after the lease ended: the row is deleted, its partitions are free
//! ```
//!
//! The node's row is the lease; partitions point to it. A transaction that changes membership or ownership first locks partition 0,
//! so joins, takeovers and leaves happen one after the other and never wait for each other in a circle. Settles and
//! renewals do not take that lock:
//!
//! - A settle holds the node's row (`FOR KEY SHARE`) while it changes events. A takeover deletes the row, so it waits for
//!   settles under way, and later ones find no row: the new owner sees everything the old one recorded, and nothing comes
//!   after.
//! - A renewal updates the row as long as it is there. If it meets a takeover, one of them waits and then finds the row gone, or
//!   renewed. A [`LeaseClock`](pillarbox_core::store::LeaseClock) judges which leases have ended.

use std::time::Duration;

use deadpool_postgres::Transaction;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::ownership::{Acquired, Epochs, LeaseMark, NodeId, NodeMode, Owner, Partitions, Renewal, Takeover};
use pillarbox_core::store::{NodeFigures, NodeStatus, NodesByLease, refusal};
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use crate::admin::overview;
use crate::compatible;
use crate::error::Failure;
use crate::fetch::wait;
use crate::row::Micros;
use crate::session::{Param, Session};
use crate::settle::micros;
use crate::sql::qualified;
use crate::store::Inner;

pub(crate) async fn join(store: &Inner, node: &NodeId, mode: NodeMode, lease: Duration) -> Result<(), Failure> {
    let mut session = store.sessions.session().await?;
    let transaction = locked(store, &mut session).await?;
    let judged = judge(store, &transaction).await?;
    let ended = judged
        .nodes_to_evict_for(mode)
        .map_err(|problem| Failure::Refused(StoreErrorKind::IncompatibleMode, problem))?;
    if !ended.is_empty() {
        clear(store, &transaction, &ended).await?;
    }
    compatible::check_visible(&transaction, &qualified(&store.table, store.table.event())).await?;
    let (id, name, lease) = (node.as_str(), mode.name(), micros(lease));
    transaction.query_typed(&store.sql.join, &[(&id, Type::TEXT), (&name, Type::TEXT), (&lease, Type::INT8)]).await?;
    transaction.commit().await?;
    session.finish();
    Ok(())
}

pub(crate) async fn acquire(store: &Inner, node: &NodeId) -> Result<Acquired, Failure> {
    let mut session = store.sessions.session().await?;
    let id = node.as_str();
    // Asked once a second by every standby, so the usual answer takes no lock and writes nothing.
    let rows = session.query(&store.sql.probe, &[(&id, Type::TEXT)]).await?;
    if let Some(answer) = takeover(&rows)?.settled() {
        session.finish();
        return Ok(answer);
    }

    let transaction = locked(store, &mut session).await?;
    evict_expired(store, &transaction).await?;
    let rows = transaction.query_typed(&store.sql.probe, &[(&id, Type::TEXT)]).await?;
    let found = takeover(&rows)?;
    let answer = match found.answer() {
        Some(answer) => answer,
        None => {
            take(store, &transaction, node, Partitions::ALL).await?;
            found.taken()
        }
    };
    transaction.commit().await?;
    session.finish();
    Ok(answer)
}

pub(crate) async fn renew(
    store: &Inner,
    node: &NodeId,
    lease: Duration,
    last: Option<LeaseMark>,
    figures: Option<&NodeFigures>,
) -> Result<Renewal, Failure> {
    let session = store.sessions.lease_session().await?;
    let (id, lease, known) = (node.as_str(), micros(lease), last.map(|last| last.0));
    let figures = figures.map(NodeFigures::column);
    let params: [Param<'_>; 4] =
        [(&id, Type::TEXT), (&lease, Type::INT8), (&known, Type::INT8), (&figures, Type::TEXT)];
    let renewed = session.query(&store.sql.renew, &params).await?;
    let mark = |rows: &[Row]| -> Result<Option<LeaseMark>, Failure> {
        Ok(rows.first().map(|row| row.try_get::<_, Micros>(0)).transpose()?.map(Micros::mark))
    };
    let answer = match mark(&renewed)? {
        Some(mark) => Renewal::Renewed { mark },
        None if last.is_none() => Renewal::Lost,
        None => Renewal::refused(mark(&session.query(&store.sql.lease_end, &params[..1]).await?)?, last),
    };
    session.finish();
    Ok(answer)
}

pub(crate) async fn leave(store: &Inner, node: &NodeId) -> Result<(), Failure> {
    let mut session = store.sessions.session().await?;
    let transaction = locked(store, &mut session).await?;
    let id = node.as_str();
    transaction.query_typed(&store.sql.leave_partitions, &[(&id, Type::TEXT)]).await?;
    transaction.query_typed(&store.sql.leave, &[(&id, Type::TEXT)]).await?;
    transaction.commit().await?;
    session.finish();
    Ok(())
}

/// Evicts a node that has not renewed its lease since it was seen.
pub(crate) async fn evict(store: &Inner, seen: &NodeStatus) -> Result<bool, Failure> {
    let mut session = store.sessions.session().await?;
    let transaction = locked(store, &mut session).await?;
    let evicted = delete(store, &transaction, seen).await?;
    transaction.query_typed(&store.sql.free_abandoned, &[]).await?;
    transaction.commit().await?;
    session.finish();
    Ok(evicted)
}

/// Evicts the nodes whose lease has ended, in a transaction that is alone in doing so.
pub(crate) async fn evict_expired(store: &Inner, transaction: &Transaction<'_>) -> Result<NodesByLease, Failure> {
    let judged = judge(store, transaction).await?;
    clear(store, transaction, &judged.ended).await?;
    Ok(judged)
}

async fn judge(store: &Inner, transaction: &Transaction<'_>) -> Result<NodesByLease, Failure> {
    let asked = Instant::now();
    let (nodes, now) = overview::statuses(&transaction.query_typed(&store.sql.nodes, &[]).await?)?;
    Ok(now.map(|now| store.lease_clock.judge(nodes, now, asked)).unwrap_or_default())
}

async fn clear(store: &Inner, transaction: &Transaction<'_>, nodes: &[NodeStatus]) -> Result<(), Failure> {
    for node in nodes {
        delete(store, transaction, node).await?;
    }
    transaction.query_typed(&store.sql.free_abandoned, &[]).await?;
    Ok(())
}

/// Deletes the row of a node that has not renewed its lease since it was seen; returns whether it did.
async fn delete(store: &Inner, transaction: &Transaction<'_>, seen: &NodeStatus) -> Result<bool, Failure> {
    let (id, expires_at) = (seen.node.as_str(), seen.expires_at.as_micros());
    let values: [Param<'_>; 2] = [(&id, Type::TEXT), (&expires_at, Type::INT8)];
    Ok(!transaction.query_typed(&store.sql.evict, &values).await?.is_empty())
}

/// Frees those of `given` that the node owns under the epochs named.
pub(crate) async fn give(
    store: &Inner,
    transaction: &Transaction<'_>,
    node: &NodeId,
    given: &Epochs,
) -> Result<(), Failure> {
    let (partitions, epochs): (Vec<i16>, Vec<i64>) =
        given.iter().map(|(partition, epoch)| (i16::from(partition), epoch)).unzip();
    let values: [Param<'_>; 3] =
        [(&node.as_str(), Type::TEXT), (&partitions, Type::INT2_ARRAY), (&epochs, Type::INT8_ARRAY)];
    transaction.query_typed(&store.sql.give_partitions, &values).await?;
    Ok(())
}

/// Makes the node the owner of `partitions`, which are free; returns the epochs under which it owns them.
pub(crate) async fn take(
    store: &Inner,
    transaction: &Transaction<'_>,
    node: &NodeId,
    partitions: Partitions,
) -> Result<Epochs, Failure> {
    let (id, partitions): (&str, Vec<i16>) = (node.as_str(), partitions.iter().map(i16::from).collect());
    let values: [Param<'_>; 2] = [(&id, Type::TEXT), (&partitions, Type::INT2_ARRAY)];
    let mut taken = Vec::with_capacity(partitions.len());
    for row in transaction.query_typed(&store.sql.take_partitions, &values).await? {
        let (partition, epoch): (i16, i64) = (row.try_get(0)?, row.try_get(1)?);
        taken.extend(u8::try_from(partition).ok().map(|partition| (partition, epoch)));
    }
    Ok(taken.into_iter().collect())
}

/// Begins a transaction that is alone in changing membership and ownership.
pub(crate) async fn locked<'a>(store: &Inner, session: &'a mut Session) -> Result<Transaction<'a>, Failure> {
    let transaction = session.transaction().await?;
    let locked = transaction.query_typed(&store.sql.lock, &[]).await;
    let is_held = |error: &tokio_postgres::Error| error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE);
    match locked {
        Ok(rows) if rows.is_empty() => return Err(no_partitions()),
        Ok(_) => {}
        Err(error) if is_held(&error) => return Err(lock_is_held(store)),
        Err(error) => return Err(error.into()),
    }
    Ok(transaction)
}

fn lock_is_held(store: &Inner) -> Failure {
    let partition = qualified(&store.table, &store.table.beside("partition"));
    let problem = format!(
        "another transaction has held the row of partition 0 in {partition} for 10 s, which nodes lock to join, leave and \
         take over; end it: `select * from pg_stat_activity where state like 'idle in transaction%'` may show it"
    );
    Failure::Refused(StoreErrorKind::Contention, problem)
}

fn no_partitions() -> Failure {
    Failure::Refused(StoreErrorKind::Schema, refusal::no_partitions())
}

/// The state of ownership as `probe.sql` finds it.
fn takeover(rows: &[Row]) -> Result<Takeover, Failure> {
    let row = rows.first().ok_or_else(no_partitions)?;
    let (owned, partitions): (i64, i64) = (row.try_get(2)?, row.try_get(3)?);
    if partitions == 0 {
        return Err(no_partitions());
    }
    let other: Option<&str> = row.try_get(5)?;
    let (expires_at, now): (Option<Micros>, Micros) = (row.try_get(6)?, row.try_get(7)?);
    let owner = match other.zip(expires_at) {
        _ if owned == partitions => Owner::Itself,
        Some((other, end)) => Owner::Other(NodeId::from_stored(other), wait(end, now)),
        None => Owner::Nobody,
    };
    Ok(Takeover {
        registered: row.try_get(0)?,
        stale: row.try_get(1)?,
        owner,
        epoch: row.try_get(4)?,
        unclean: row.try_get(8)?,
    })
}
