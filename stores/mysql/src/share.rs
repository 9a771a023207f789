use std::ops::RangeInclusive;
use std::time::Duration;

use pillarbox_core::ownership::{Epochs, Holding, Mode, NodeId, Partitions, Share, spread};

use crate::answer::{Answers, int, text};
use crate::error::Failure;
use crate::fetch::wait;
use crate::literal::{Literal, fill};
use crate::ownership::{clear_ended, locked, no_partitions};
use crate::sql::script;
use crate::store::Inner;

/// Clears away nodes whose lease has ended, frees what `node` gives, and takes what is free of its target, in one
/// transaction that is alone in changing membership and ownership.
pub(crate) async fn share(store: &Inner, node: &NodeId, give: &Epochs) -> Result<Share, Failure> {
    let sql = &store.sql;
    let id = Literal::text(node.as_str());
    let owners = fill(&sql.owners, &[("id", &id)]);
    let mut session = store.sessions.session().await?;
    // Asked once a second by every node, so the usual answer takes no lock and writes nothing. The two are read one after
    // the other: what the node owns is right, what it should own may have changed since, and the next call will tell.
    let found = State::read(&session.run(script([&sql.members, &owners])).await?, 0, node)?;
    if found.is_settled(give) {
        session.finish();
        return Ok(found.answer(Partitions::NONE));
    }

    let given = Literal::tuples(give.iter().map(|(partition, epoch)| (i64::from(partition), epoch)));
    let given = fill(&sql.give_partitions, &[("id", &id), ("given", &given)]);
    locked(store, &mut session, &[]).await?;
    let judged = clear_ended(store, &mut session).await?;
    let answers = session.run(script([&*given, &sql.members, &owners])).await?;
    let mut found = State::read(&answers, 1, node)?;
    found.next_expiry = found.next_expiry.into_iter().chain(judged.spared_for).min();
    let gained = if found.registered { found.wanted() } else { Partitions::NONE };
    let gain = fill(&sql.gain_partitions, &[("id", &id), ("partitions", &list(gained))]);
    let change = (!gained.is_empty()).then_some(&*gain);
    session.run(script(change.into_iter().chain(["COMMIT"]))).await?;
    session.finish();
    Ok(found.answer(gained))
}

fn list(partitions: Partitions) -> Literal {
    Literal::ints(&partitions.iter().map(i64::from).collect::<Vec<_>>())
}

/// Nodes and partitions as `members.sql` and `owners.sql` find them.
#[derive(Debug, Default)]
struct State {
    /// Nodes that share the partitions, in the order in which they joined.
    members: Vec<NodeId>,
    /// True if the node is registered.
    registered: bool,
    /// True if any lease has ended.
    expired: bool,
    next_expiry: Option<Duration>,
    owned: Partitions,
    /// Of all partitions.
    epochs: Epochs,
    free: Partitions,
    /// Those of the free ones whose owner died.
    died: Partitions,
    target: Option<RangeInclusive<u8>>,
}

impl State {
    /// Reads the answers of the two statements, the first of which is at `index`.
    fn read(answers: &Answers, index: usize, node: &NodeId) -> Result<Self, Failure> {
        let mut state = Self::default();
        for row in answers.rows(index) {
            let other = NodeId::from_stored(text(row, 0)?.unwrap_or_default());
            let left = int(row, 2)?;
            state.expired |= left <= 0;
            if other == *node {
                state.registered = true;
            } else if left > 0 {
                state.next_expiry = state.next_expiry.into_iter().chain([wait(left)]).min();
            }
            if text(row, 1)? == Some(Mode::Partitioned.name()) {
                state.members.push(other);
            }
        }
        state.target = spread::target(&state.members, node);
        if answers.rows(index + 1).is_empty() {
            return Err(no_partitions());
        }
        for row in answers.rows(index + 1) {
            let Ok(partition) = u8::try_from(int(row, 0)?) else { continue };
            state.epochs.extend([(partition, int(row, 2)?)]);
            match int(row, 1)? {
                0 => state.free.insert(partition),
                1 => state.owned.insert(partition),
                2 => state.free.insert(partition) && state.died.insert(partition),
                _ => false,
            };
        }
        Ok(state)
    }

    /// The free partitions that the node should own.
    fn wanted(&self) -> Partitions {
        self.free.intersection(self.target.clone().map_or(Partitions::NONE, Partitions::from))
    }

    /// True if there is nothing to clear away, to give or to take.
    fn is_settled(&self, give: &Epochs) -> bool {
        let is_given = |(partition, epoch)| self.owned.contains(partition) && self.epochs.get(partition) == Some(epoch);
        !self.expired && self.registered && self.wanted().is_empty() && !give.iter().any(is_given)
    }

    /// The answer for a node that has just taken `gained`.
    fn answer(self, gained: Partitions) -> Share {
        if !self.registered {
            return Share::Lost;
        }
        // What was taken has the epoch after the one that was read under the lock.
        let taken = self.epochs.of(gained);
        let taken = taken.iter().map(|(partition, epoch)| (partition, epoch + 1));
        Share::Member(Holding {
            owned: self.owned.union(gained),
            epochs: self.epochs.of(self.owned).iter().chain(taken).collect(),
            gained,
            unclean: gained.intersection(self.died),
            target: self.target,
            next_expiry: self.next_expiry,
        })
    }
}
