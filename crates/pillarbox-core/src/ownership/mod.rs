//! Who may deliver: nodes, their leases, and what points to them.

mod caretaker;
mod hold;
mod lease;
mod mode;
mod node;

pub(crate) use caretaker::Caretaker;
pub use hold::{CRASHED, DIED, Fence, Past, begun_by};
pub(crate) use lease::Lease;
pub use mode::{Mode, UnknownMode};
pub use node::{NodeId, NodeName};

use std::time::Duration;

/// The answer to an attempt to become the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// This node owns all partitions, from now until its lease ends.
    Owner {
        /// Counts the changes of ownership; greater than that of any owner before.
        epoch: i64,
        /// Whether the owner before was cleared away without having left: what it was delivering may have been the
        /// cause. Known to the call that took over only.
        unclean: bool,
    },
    /// Another node is alive and owns them.
    Standby {
        /// Who.
        owner: NodeId,
        /// How long until its lease ends if it is not renewed.
        expires_in: Duration,
    },
    /// This node is no longer registered: its lease ended and another node cleared it away.
    Lost,
}

/// The answer to the renewal of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// The lease runs from now.
    Renewed,
    /// The lease had ended, or the node was cleared away. It cannot come back under this id.
    Lost,
}

/// By what right a node delivers, from becoming an owner to ceasing to be one.
#[derive(Debug, Clone)]
pub(crate) struct Tenure {
    pub(crate) node: NodeId,
    pub(crate) mode: Mode,
    /// Whether the owner before died: the rows that are pending now may include one that killed it.
    pub(crate) unclean: bool,
}

impl Tenure {
    pub(crate) fn fence(&self) -> Fence {
        self.mode.fence()
    }
}

/// The answer to [`reclaim`](crate::store::Store::reclaim).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reclaimed {
    /// Whether this node is still registered and its lease has not ended.
    pub registered: bool,
    /// Rows that were freed.
    pub freed: u64,
    /// How long until the next lease of another node ends, if that node does not renew it.
    pub next_expiry: Option<Duration>,
}
