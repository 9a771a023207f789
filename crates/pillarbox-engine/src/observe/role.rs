use std::fmt;

use pillarbox_core::ownership::NodeId;

/// The role of an outbox at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// It has no valid registration in the database and is trying to get one.
    Joining,
    /// Another node delivers; this one takes over when that one stops or dies.
    Standby {
        /// The node that delivers.
        owner: NodeId,
    },
    /// It delivers.
    Active {
        /// Its id in the database.
        node: NodeId,
    },
    /// It writes and does not deliver: mode `writer_only`, or delivering is switched off.
    Writing,
    /// It was shut down. Writing still works; delivering does not.
    Stopped,
}

/// For people: `standing by for till-1-…`.
impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joining => f.write_str("joining"),
            Self::Standby { owner } => write!(f, "standing by for {owner}"),
            Self::Active { node } => write!(f, "delivering as {node}"),
            Self::Writing => f.write_str("only writing"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}
