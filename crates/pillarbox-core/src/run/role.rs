use crate::ownership::NodeId;

/// What an outbox is doing at the moment.
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
    /// It writes and does not deliver: mode `writer_only`.
    Writing,
    /// It was shut down. Writing still works; delivering does not.
    Stopped,
}
