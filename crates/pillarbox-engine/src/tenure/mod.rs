//! A node's right to deliver during one term.

mod history_guard;

use std::sync::Arc;

use pillarbox_core::ownership::{Fence, NodeId, NodeMode, PriorAttempt};

pub(crate) use history_guard::HistoryGuard;

/// A node's right to deliver during one term: from becoming an owner to ceasing to be one.
#[derive(Debug, Clone)]
pub(crate) struct Tenure {
    pub(crate) node: NodeId,
    pub(crate) mode: NodeMode,
    /// True if the owner before died: the rows that are pending now may include one that killed it.
    pub(crate) unclean: bool,
    /// True for a process that has lost a lease before.
    pub(crate) has_lost_a_lease: bool,
    /// The number of times that operators had intervened before anything was read.
    pub(crate) interventions: i64,
    /// The check that the database is still the one that the node has joined.
    pub(crate) history_guard: Arc<HistoryGuard>,
}

impl Tenure {
    pub(crate) fn fence(&self) -> Fence {
        self.mode.fence()
    }

    /// Reads the column `locked_by` of a row that is about to be delivered. A process that has lost a lease itself cannot tell an attempt that
    /// crashed from one whose node was cut off by the same outage and could not take its announcement back. So it counts none, and
    /// announces its own: should that crash, the next process counts it.
    pub(crate) fn prior_attempt(&self, locked_by: Option<&str>) -> PriorAttempt {
        match PriorAttempt::read(locked_by, &self.node) {
            PriorAttempt::Crashed if self.has_lost_a_lease => PriorAttempt::Suspect,
            prior_attempt => prior_attempt,
        }
    }
}
