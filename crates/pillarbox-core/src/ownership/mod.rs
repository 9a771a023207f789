//! Who may deliver: nodes, their leases, and what points to them.

mod lease;
mod mode;
mod node;

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
