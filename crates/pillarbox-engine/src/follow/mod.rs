//! Waiting for the end of events, wherever they are delivered: the waiters, and the one task that asks the table for all of them.

mod followed;
mod follower;
mod wait;

pub(crate) use followed::Followed;
pub(crate) use follower::Follower;
pub use wait::{Wait, WaitAll, WaitError};

/// The end of an event. One with several handlers has ended when the last of its rows has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventEnd {
    /// Every handler has taken it, or its fallback has.
    Delivered {
        /// The positions that handlers have reported by [`Outcome::delivered_as`](pillarbox_core::handle::Outcome::delivered_as), in the order of
        /// their names; empty if none has.
        positions: Vec<DeliveredAs>,
    },
    /// It was given up, by one handler at least: the first of them by name.
    Dead {
        /// The name of the handler, if it has one.
        handler: Option<Box<str>>,
        /// The error of its last attempt.
        error: String,
    },
    /// An operator has cancelled it, for one handler at least, and no handler has given it up.
    Cancelled,
    /// It was seen in the table, and is not there any more: a process that deletes what it has delivered has delivered it, or an operator
    /// has discarded it. Which of the two, nothing tells.
    Gone,
}

/// The position at which the receiver of one handler's event has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeliveredAs {
    /// The name of the handler, if it has one.
    pub handler: Option<Box<str>>,
    /// The position, as the handler has reported it.
    pub position: String,
}
