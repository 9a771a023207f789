//! Who may deliver.
//!
//! ```text
//!             join            acquire: nobody owns          renew, settle: still there
//!   (none) ─────────▶ member ─────────────────────▶ owner ──┐
//!                      │  ▲  acquire: another lives  │ ▲────┘
//!                      │  └──────────── standby ◀────┘
//!                      ▼
//!            leave, or any node's acquire after expires_at: the row is deleted, its partitions are free
//! ```
//!
//! The node's row is the lease; partitions point to it. Whoever changes membership or ownership first locks partition 0,
//! so joins, takeovers and leaves happen one after the other and never wait for each other in a circle. Settles and
//! renewals do not take that lock:
//!
//! - A settle holds the node's row (`FOR KEY SHARE`) while it changes events. A takeover deletes the row, so it waits for
//!   settles under way, and later ones find no row: the new owner sees everything the old one recorded, and nothing comes
//!   after.
//! - A renewal updates the row if its lease has not ended. Where it meets a takeover, one of them waits and then finds the
//!   row gone, or renewed. In both cases the database decides, by its own clock.

use std::time::Duration;

use deadpool_postgres::Transaction;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::ownership::{Acquired, Mode, NodeId, Partitions, Renewal};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::{Failure, migrate_remedy};
use crate::fetch::wait;
use crate::row::Micros;
use crate::session::Session;
use crate::settle::micros;
use crate::store::Inner;

pub(crate) async fn join(store: &Inner, node: &NodeId, mode: Mode, lease: Duration) -> Result<(), Failure> {
    let mut session = store.sessions.lease_session().await?;
    let transaction = locked(store, &mut session).await?;
    for row in transaction.query_typed(&store.sql.live_nodes, &[]).await? {
        let (other, other_mode): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
        // A mode of a later release is unknown here, and so is whether it would tolerate this one.
        if !other_mode.parse().is_ok_and(|known: Mode| mode.coexists_with(known)) {
            let problem = format!(
                "node `{other}` runs in mode `{other_mode}` on this table, beside which `{mode}` cannot run; stop it, \
                 or start this node in the same mode"
            );
            return Err(Failure::Refused(StoreErrorKind::IncompatibleMode, problem));
        }
    }
    let (id, name, lease) = (node.as_str(), mode.name(), micros(lease));
    transaction.query_typed(&store.sql.join, &[(&id, Type::TEXT), (&name, Type::TEXT), (&lease, Type::INT8)]).await?;
    transaction.commit().await?;
    session.finish();
    Ok(())
}

pub(crate) async fn acquire(store: &Inner, node: &NodeId) -> Result<Acquired, Failure> {
    let mut session = store.sessions.lease_session().await?;
    let id = node.as_str();
    // Asked once a second by every standby, so the usual answer takes no lock and writes nothing.
    let rows = session.query(&store.sql.probe, &[(&id, Type::TEXT)]).await?;
    let found = Probe::read(&rows)?;
    if !found.expired_nodes
        && let Some(answer) = found.answer()
    {
        session.finish();
        return Ok(answer);
    }

    let transaction = locked(store, &mut session).await?;
    transaction.query_typed(&store.sql.clear_nodes, &[]).await?;
    transaction.query_typed(&store.sql.free_partitions, &[]).await?;
    let rows = transaction.query_typed(&store.sql.probe, &[(&id, Type::TEXT)]).await?;
    let found = Probe::read(&rows)?;
    let answer = match found.answer() {
        Some(answer) => answer,
        None => {
            take(store, &transaction, node, Partitions::ALL).await?;
            Acquired::Owner { epoch: found.epoch + 1, unclean: found.unclean }
        }
    };
    transaction.commit().await?;
    session.finish();
    Ok(answer)
}

pub(crate) async fn renew(store: &Inner, node: &NodeId, lease: Duration) -> Result<Renewal, Failure> {
    let session = store.sessions.lease_session().await?;
    let (id, lease) = (node.as_str(), micros(lease));
    let renewed = session.query(&store.sql.renew, &[(&id, Type::TEXT), (&lease, Type::INT8)]).await?;
    session.finish();
    Ok(if renewed.is_empty() { Renewal::Lost } else { Renewal::Renewed })
}

pub(crate) async fn leave(store: &Inner, node: &NodeId) -> Result<(), Failure> {
    let mut session = store.sessions.lease_session().await?;
    let transaction = locked(store, &mut session).await?;
    give(store, &transaction, node, Partitions::ALL).await?;
    transaction.query_typed(&store.sql.leave, &[(&node.as_str(), Type::TEXT)]).await?;
    transaction.commit().await?;
    session.finish();
    Ok(())
}

/// Frees those of `partitions` that the node owns.
pub(crate) async fn give(
    store: &Inner,
    transaction: &Transaction<'_>,
    node: &NodeId,
    partitions: Partitions,
) -> Result<(), Failure> {
    change(&store.sql.give_partitions, transaction, node, partitions).await
}

/// Makes the node the owner of `partitions`, which are free.
pub(crate) async fn take(
    store: &Inner,
    transaction: &Transaction<'_>,
    node: &NodeId,
    partitions: Partitions,
) -> Result<(), Failure> {
    change(&store.sql.take_partitions, transaction, node, partitions).await
}

async fn change(
    statement: &str,
    transaction: &Transaction<'_>,
    node: &NodeId,
    partitions: Partitions,
) -> Result<(), Failure> {
    let (id, partitions): (&str, Vec<i16>) = (node.as_str(), partitions.iter().map(i16::from).collect());
    transaction.query_typed(statement, &[(&id, Type::TEXT), (&partitions, Type::INT2_ARRAY)]).await?;
    Ok(())
}

/// Begins a transaction that is alone in changing membership and ownership.
pub(crate) async fn locked<'a>(store: &Inner, session: &'a mut Session) -> Result<Transaction<'a>, Failure> {
    let transaction = session.transaction().await?;
    if transaction.query_typed(&store.sql.lock, &[]).await?.is_empty() {
        return Err(no_partitions());
    }
    Ok(transaction)
}

fn no_partitions() -> Failure {
    let problem = "the table of partitions is empty, without its rows no node can own any";
    Failure::Refused(StoreErrorKind::Schema, migrate_remedy(&format!("{problem}; restore it, or drop the tables")))
}

/// The state of ownership as `probe.sql` finds it.
struct Probe {
    alive: bool,
    expired_nodes: bool,
    owns_all: bool,
    epoch: i64,
    owner: Option<(NodeId, Duration)>,
    /// Whether the last owner of one of them died.
    unclean: bool,
}

impl Probe {
    fn read(rows: &[Row]) -> Result<Self, Failure> {
        let row = rows.first().ok_or_else(no_partitions)?;
        let (owned, partitions): (i64, i64) = (row.try_get(2)?, row.try_get(3)?);
        if partitions == 0 {
            return Err(no_partitions());
        }
        let owner: Option<&str> = row.try_get(5)?;
        let (expires_at, now): (Option<Micros>, Micros) = (row.try_get(6)?, row.try_get(7)?);
        Ok(Self {
            alive: row.try_get(0)?,
            expired_nodes: row.try_get(1)?,
            owns_all: owned == partitions,
            epoch: row.try_get(4)?,
            owner: owner.zip(expires_at).map(|(owner, end)| (NodeId::from_stored(owner), wait(end, now))),
            unclean: row.try_get(8)?,
        })
    }

    /// The answer to `acquire`, unless the partitions are free to take.
    fn answer(&self) -> Option<Acquired> {
        if !self.alive {
            return Some(Acquired::Lost);
        }
        if self.owns_all {
            return Some(Acquired::Owner { epoch: self.epoch, unclean: false });
        }
        let (owner, expires_in) = self.owner.clone()?;
        Some(Acquired::Standby { owner, expires_in })
    }
}
