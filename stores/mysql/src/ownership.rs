//! Who may deliver.
//!
//! ```text
//!             join            acquire: nobody owns          renew, settle: still there
//!   (none) ─────────▶ member ─────────────────────▶ owner ──┐
//!                      │  ▲  acquire: another lives  │ ▲────┘
//!                      │  └──────────── standby ◀────┘
//!                      ▼
//!            leave, or any node's acquire, share or reclaim after expires_at: the row is deleted
//! ```
//!
//! Where nodes share the partitions, each is an owner of some, as `share` has it.
//!
//! The node's row is the lease; partitions and events point to it. Whoever changes membership or ownership first locks
//! partition 0, so joins, takeovers and leaves happen one after the other and never wait for each other in a circle. Claims,
//! settles and renewals do not take that lock:
//!
//! - A claim or a settle holds the node's entry in the index `pillarbox_fence` while it changes events. Who clears the node
//!   away deletes that entry too, so it waits for those under way, and later ones find no node: whoever is next sees
//!   everything that was recorded, and nothing comes after.
//! - A renewal updates the row if its lease has not ended, which leaves the index alone, so it waits for no claim or settle.
//!   Where it meets a takeover, one of them waits and then finds the row gone, or renewed. In both cases the database
//!   decides, by its own clock.
//!
//! A partition names its owner. NULL is free, and so is `?`, which whoever clears a node away writes into what it owned: the
//! next owner learns by it that the one before did not leave.

use std::time::Duration;

use mysql_async::Row;
use pillarbox_core::error::StoreErrorKind;
use pillarbox_core::ownership::{Acquired, Mode, NodeId, Renewal};

use crate::answer::{Answers, int, is_true, optional_int, text};
use crate::error::{Failure, migrate_remedy};
use crate::fetch::wait;
use crate::literal::{Literal, fill};
use crate::session::Session;
use crate::settle::micros;
use crate::sql::script;
use crate::store::Inner;

pub(crate) async fn join(store: &Inner, node: &NodeId, mode: Mode, lease: Duration) -> Result<(), Failure> {
    let mut session = store.sessions.lease_session().await?;
    let answers = locked(store, &mut session, &[&store.sql.live_nodes]).await?;
    for row in answers.rows(0) {
        let (other, other_mode) = (text(row, 0)?.unwrap_or_default(), text(row, 1)?.unwrap_or_default());
        // A mode of a later release is unknown here, and so is whether it would tolerate this one.
        if !other_mode.parse().is_ok_and(|known: Mode| mode.coexists_with(known)) {
            let problem = format!(
                "node `{other}` runs in mode `{other_mode}` on this table, beside which `{mode}` cannot run; stop it, \
                 or start this node in the same mode"
            );
            return Err(Failure::Refused(StoreErrorKind::IncompatibleMode, problem));
        }
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
    let mut session = store.sessions.lease_session().await?;
    let id = Literal::text(node.as_str());
    // Asked once a second by every standby, so the usual answer takes no lock and writes nothing.
    let probe = fill(&store.sql.probe, &[("id", &id)]);
    let answers = session.run(&probe).await?;
    let found = Probe::read(answers.first(0))?;
    if !found.expired_nodes
        && let Some(answer) = found.answer()
    {
        session.finish();
        return Ok(answer);
    }

    let answers = locked(store, &mut session, &[&store.sql.clear_nodes, &store.sql.free_abandoned, &probe]).await?;
    let found = Probe::read(answers.first(2))?;
    let answer = match found.answer() {
        Some(answer) => {
            session.run("COMMIT").await?;
            answer
        }
        None => {
            let epoch = found.epoch + 1;
            let take = fill(&store.sql.take_partitions, &[("id", &id), ("epoch", &Literal::int(epoch))]);
            session.run(script([&*take, "COMMIT"])).await?;
            Acquired::Owner { epoch, unclean: found.abandoned }
        }
    };
    session.finish();
    Ok(answer)
}

pub(crate) async fn renew(store: &Inner, node: &NodeId, lease: Duration) -> Result<Renewal, Failure> {
    let values = [("id", &Literal::text(node.as_str())), ("lease", &Literal::int(micros(lease)))];
    let mut session = store.sessions.lease_session().await?;
    let answers = session.run(fill(&store.sql.renew, &values)).await?;
    session.finish();
    Ok(if answers.matched(0) == 0 { Renewal::Lost } else { Renewal::Renewed })
}

pub(crate) async fn leave(store: &Inner, node: &NodeId) -> Result<(), Failure> {
    let id = Literal::text(node.as_str());
    let leave = fill(&store.sql.leave, &[("id", &id)]);
    let free = fill(&store.sql.free_partitions, &[("id", &id)]);
    let mut session = store.sessions.lease_session().await?;
    locked(store, &mut session, &[&leave, &free, "COMMIT"]).await?;
    session.finish();
    Ok(())
}

/// Begins a transaction that is alone in changing membership and ownership, and runs statements in it.
pub(crate) async fn locked(store: &Inner, session: &mut Session, statements: &[&str]) -> Result<Answers, Failure> {
    let lock = ["START TRANSACTION", &store.sql.lock];
    let mut answers = session.run(script(lock.iter().chain(statements))).await?;
    if answers.first(1).is_none() {
        return Err(no_partitions());
    }
    answers.0.drain(..2);
    Ok(answers)
}

pub(crate) fn no_partitions() -> Failure {
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
    /// Whether partitions point to a node that is gone without having left.
    abandoned: bool,
}

impl Probe {
    fn read(row: Option<&Row>) -> Result<Self, Failure> {
        let row = row.ok_or_else(no_partitions)?;
        let (owned, partitions) = (int(row, 2)?, int(row, 3)?);
        if partitions == 0 {
            return Err(no_partitions());
        }
        let owner = text(row, 5)?.map(NodeId::from_stored);
        Ok(Self {
            alive: is_true(row, 0)?,
            expired_nodes: is_true(row, 1)?,
            owns_all: owned == partitions,
            epoch: int(row, 4)?,
            owner: owner.zip(optional_int(row, 6)?.map(wait)),
            abandoned: is_true(row, 7)?,
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
