//! Nodes, modes and partitions, and the basis of a node's right to a row: the terms in which a store and the engine speak of the right to
//! deliver. The essay on keeping that right is in `ownership/mod.rs` of `pillarbox-engine`.

mod epochs;
mod fence;
mod mode;
mod node;
mod partitions;
mod prior_attempt;
mod rebalance_view;
pub mod spread;
mod takeover;

pub use epochs::Epochs;
pub use fence::Fence;
pub use mode::{NodeMode, UnknownMode};
pub use node::{NodeId, NodeName};
pub use partitions::Partitions;
pub use prior_attempt::{CRASHED, DIED, PriorAttempt, begun_by};
pub use rebalance_view::RebalanceView;
pub use takeover::{Owner, Takeover};

use std::ops::RangeInclusive;
use std::time::Duration;

/// The answer to an attempt to become the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// This node owns all partitions, from now until its lease ends.
    Owner {
        /// Counts the changes of ownership; greater than that of any owner before.
        epoch: i64,
        /// True if the owner before was evicted without having left: an event that it was delivering may have been the
        /// cause. Known only to the call that took over.
        unclean: bool,
    },
    /// Another node is alive and owns them.
    Standby {
        /// The node that owns them.
        owner: NodeId,
        /// The time until its lease ends if it is not renewed.
        expires_in: Duration,
    },
    /// This node is no longer registered: its lease ended and another node evicted it.
    Lost,
}

/// The answer to the renewal of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The lease runs from now.
    Renewed {
        /// The state of the node's row now.
        mark: LeaseMark,
    },
    /// The node was evicted, or has left. It cannot come back under this id.
    Lost,
    /// The node's row is in an older state than the last confirmed renewal left it in: the database has gone back.
    WentBack,
}

impl Renewal {
    /// The answer if no row was renewed: the node's row is as it was `found`, and `last` is the mark of the last confirmed renewal.
    #[must_use]
    pub fn refused(found: Option<LeaseMark>, last: Option<LeaseMark>) -> Self {
        match found.zip(last) {
            Some((found, last)) if found < last => Self::WentBack,
            _ => Self::Lost,
        }
    }
}

/// The state of a node's row: another after each renewal. It is the end of the lease as the row holds it, in microseconds of
/// the database's own reckoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseMark(pub i64);

/// The answer to [`reclaim`](crate::store::Store::reclaim).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reclaimed {
    /// True if this node is still registered.
    pub registered: bool,
    /// Rows that were freed.
    pub freed: u64,
    /// The time until the next lease of another node ends, if that node does not renew it.
    pub next_expiry: Option<Duration>,
}

/// The answer to [`rebalance`](crate::store::Store::rebalance).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebalanced {
    /// The node is registered.
    Member(Holding),
    /// The node is no longer registered: its lease ended and another node evicted it.
    Lost,
}

/// The partitions that a node owns, and those that it should own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holding {
    /// The partitions that it owns now.
    pub owned: Partitions,
    /// The epoch of each partition that it owns.
    pub epochs: Epochs,
    /// The owned partitions that this call took: others delivered their events before.
    pub gained: Partitions,
    /// The gained partitions whose last owner died rather than gave them or left: an event that it was delivering may have been
    /// the cause.
    pub unclean: Partitions,
    /// The partitions that it should own; `None` if 256 nodes stand before it.
    pub target: Option<RangeInclusive<u8>>,
    /// The time until the next lease of another node ends, if that node does not renew it.
    pub next_expiry: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_is_refused_to_a_node_that_is_gone_or_a_database_that_went_back() {
        let mark = |micros: i64| Some(LeaseMark(micros));
        for (found, last, answer) in [
            (None, None, Renewal::Lost),
            (None, mark(7), Renewal::Lost),
            (mark(7), None, Renewal::Lost),
            (mark(6), mark(7), Renewal::WentBack),
            (mark(7), mark(7), Renewal::Lost),
            (mark(8), mark(7), Renewal::Lost),
        ] {
            assert_eq!(Renewal::refused(found, last), answer, "{found:?} after {last:?}");
        }
    }
}
