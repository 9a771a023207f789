//! Membership of nodes, and the right to deliver.
//!
//! ```text
//!             join            acquire: nobody owns          renew, settle: still there
//!   (none) ─────────▶ member ─────────────────────▶ owner ──┐
//!                      │  ▲  acquire: another lives  │ ▲────┘
//!                      │  └──────────── standby ◀────┘
//!                      ▼
//!            leave, or any node's acquire, rebalance or reclaim after the lease ended: the row is deleted
//! ```
//!
//! If nodes share the partitions, each is an owner of some, as `rebalance` decides.
//!
//! The node's row is the lease; partitions and events point to it. A transaction that changes membership or ownership first locks
//! partition 0, so joins, takeovers and leaves happen one after the other and never wait for each other in a circle. Claims,
//! settles and renewals do not take that lock; the completion of an event in its handler's transaction shares it (`complete.rs`):
//!
//! - A claim or a settle holds the node's entry in the index `pillarbox_fence` while it changes events. A transaction that evicts
//!   the node deletes that entry too, so it waits for those under way, and later ones find no node: the next owner sees
//!   everything that was recorded, and nothing comes after.
//! - A renewal updates the row as long as it is there, which leaves the index alone, so it waits for no claim or settle. If it
//!   meets a takeover, one of them waits and then finds the row gone, or renewed. A
//!   [`LeaseClock`](pillarbox_core::store::LeaseClock) judges which leases have ended.
//!
//! A partition names its owner. NULL is free, and so is `?`, which marks the partitions of a node that was evicted: the next
//! owner learns by it that the one before did not leave.

use std::time::Duration;

use mysql_async::Row;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::ownership::{Acquired, LeaseMark, NodeId, NodeMode, Owner, Renewal, Takeover};
use pillarbox_core::store::{NodeFigures, NodeStatus, NodesByLease, refusal};
use tokio::time::Instant;

use crate::admin::overview;
use crate::answer::{Answers, int, is_true, optional_int, text};
use crate::error::Failure;
use crate::fetch::wait;
use crate::literal::{Literal, fill};
use crate::session::Session;
use crate::settle::micros;
use crate::sql::{qualified, script};
use crate::store::Inner;

pub(crate) async fn join(store: &Inner, node: &NodeId, mode: NodeMode, lease: Duration) -> Result<(), Failure> {
    let mut session = store.sessions.session().await?;
    locked(store, &mut session, &[]).await?;
    let judged = judge(store, &mut session).await?;
    let ended = judged
        .nodes_to_evict_for(mode)
        .map_err(|problem| Failure::Refused(StoreErrorKind::IncompatibleMode, problem))?;
    if !ended.is_empty() {
        clear(store, &mut session, &ended).await?;
    }
    let values = [
        ("id", &Literal::text(node.as_str())),
        ("mode", &Literal::text(mode.name())),
        ("lease", &Literal::int(micros(lease))),
    ];
    session.run(script([&*fill(&store.sql.join, &values), "COMMIT"])).await?;
    session.finish();
    Ok(())
}

pub(crate) async fn acquire(store: &Inner, node: &NodeId) -> Result<Acquired, Failure> {
    let mut session = store.sessions.session().await?;
    let id = Literal::text(node.as_str());
    // Asked once a second by every standby, so the usual answer takes no lock and writes nothing.
    let probe = fill(&store.sql.probe, &[("id", &id)]);
    let answers = session.run(&probe).await?;
    if let Some(answer) = takeover(answers.first(0))?.settled() {
        session.finish();
        return Ok(answer);
    }

    locked(store, &mut session, &[]).await?;
    evict_expired(store, &mut session).await?;
    let found = takeover(session.run(&probe).await?.first(0))?;
    let answer = match found.answer() {
        Some(answer) => {
            session.run("COMMIT").await?;
            answer
        }
        None => {
            let epoch = Literal::int(found.epoch + 1);
            let take = fill(&store.sql.take_table, &[("id", &id), ("epoch", &epoch)]);
            session.run(script([&*take, "COMMIT"])).await?;
            found.taken()
        }
    };
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
    let id = Literal::text(node.as_str());
    let not_before = last.map(|last| fill(&store.sql.not_before, &[("last", &Literal::int(last.0))]));
    let not_before = Literal::clause(not_before.unwrap_or_default());
    let figures = figures.map(|figures| format!(", `figures` = {}", Literal::text(&figures.column())));
    let figures = Literal::clause(figures.unwrap_or_default());
    let lease = Literal::int(micros(lease));
    let values = [("id", &id), ("lease", &lease), ("and_figures", &figures), ("and_not_before", &not_before)];
    let renew = fill(&store.sql.renew, &values);
    let lease_end = fill(&store.sql.lease_end, &[("id", &id)]);
    let mut session = store.sessions.lease_session().await?;
    let answers = session.run(script([renew, lease_end])).await?;
    session.finish();
    let found = answers.first(1).map(|row| int(row, 0)).transpose()?.map(LeaseMark);
    Ok(match found {
        Some(mark) if answers.matched(0) > 0 => Renewal::Renewed { mark },
        found => Renewal::refused(found, last),
    })
}

pub(crate) async fn leave(store: &Inner, node: &NodeId) -> Result<(), Failure> {
    let id = Literal::text(node.as_str());
    let leave = fill(&store.sql.leave, &[("id", &id)]);
    let free = fill(&store.sql.leave_partitions, &[("id", &id)]);
    let mut session = store.sessions.session().await?;
    locked(store, &mut session, &[&leave, &free, "COMMIT"]).await?;
    session.finish();
    Ok(())
}

/// Evicts a node that has not renewed its lease since it was seen.
pub(crate) async fn evict(store: &Inner, seen: &NodeStatus) -> Result<bool, Failure> {
    let evict = delete(store, seen);
    let mut session = store.sessions.session().await?;
    let answers = locked(store, &mut session, &[&evict, &store.sql.free_abandoned, "COMMIT"]).await?;
    session.finish();
    Ok(answers.matched(0) > 0)
}

/// Evicts the nodes whose lease has ended, in a transaction that is alone in doing so.
pub(crate) async fn evict_expired(store: &Inner, session: &mut Session) -> Result<NodesByLease, Failure> {
    let judged = judge(store, session).await?;
    clear(store, session, &judged.ended).await?;
    Ok(judged)
}

async fn judge(store: &Inner, session: &mut Session) -> Result<NodesByLease, Failure> {
    let asked = Instant::now();
    let (nodes, now) = overview::statuses(session.run(&store.sql.nodes).await?.rows(0))?;
    Ok(now.map(|now| store.lease_clock.judge(nodes, now, asked)).unwrap_or_default())
}

async fn clear(store: &Inner, session: &mut Session, nodes: &[NodeStatus]) -> Result<(), Failure> {
    let deletes = nodes.iter().map(|node| delete(store, node));
    session.run(script(deletes.chain([store.sql.free_abandoned.clone()]))).await?;
    Ok(())
}

/// SQL that deletes the row of a node that has not renewed its lease since it was seen.
fn delete(store: &Inner, seen: &NodeStatus) -> String {
    let (id, expires_at) = (Literal::text(seen.node.as_str()), Literal::int(seen.expires_at.as_micros()));
    fill(&store.sql.evict, &[("id", &id), ("expires_at", &expires_at)])
}

/// Begins a transaction that is alone in changing membership and ownership, and runs statements in it.
pub(crate) async fn locked(store: &Inner, session: &mut Session, statements: &[&str]) -> Result<Answers, Failure> {
    let lock = ["START TRANSACTION", &store.sql.lock];
    let answers = session.run(script(lock.iter().chain(statements))).await;
    let mut answers =
        answers.map_err(|failure| if failure.is_lock_timeout() { lock_is_held(store) } else { failure })?;
    if answers.first(1).is_none() {
        return Err(no_partitions());
    }
    answers.0.drain(..2);
    Ok(answers)
}

/// Not tried again at once, unlike a call that lost against another transaction: it has lasted for long already.
fn lock_is_held(store: &Inner) -> Failure {
    let partition = qualified(&store.table, &store.table.beside("partition"));
    let problem = format!(
        "another transaction has held rows of {partition} for 10 s, most likely that of partition 0, which nodes lock to join, \
         leave and take over; end it: `information_schema.innodb_trx` shows the open transactions"
    );
    Failure::Refused(StoreErrorKind::Contention, problem)
}

pub(crate) fn no_partitions() -> Failure {
    Failure::Refused(StoreErrorKind::Schema, refusal::no_partitions())
}

/// The state of ownership as `probe.sql` finds it.
fn takeover(row: Option<&Row>) -> Result<Takeover, Failure> {
    let row = row.ok_or_else(no_partitions)?;
    let (owned, partitions) = (int(row, 2)?, int(row, 3)?);
    if partitions == 0 {
        return Err(no_partitions());
    }
    let owner = match text(row, 5)?.zip(optional_int(row, 6)?) {
        _ if owned == partitions => Owner::Itself,
        Some((other, left)) => Owner::Other(NodeId::from_stored(other), wait(left)),
        None => Owner::Nobody,
    };
    // A partition may point to a node that is gone without having left.
    let unclean = is_true(row, 7)?;
    Ok(Takeover { registered: is_true(row, 0)?, stale: is_true(row, 1)?, owner, epoch: int(row, 4)?, unclean })
}
