use super::Statement;
use crate::ownership::{Fence, NodeId};
use crate::row::Verdict;

/// A change other than an insert of events, which an adapter makes in the user's transaction.
#[derive(Debug)]
pub struct Command<'a> {
    /// The change, for stores without SQL.
    pub action: Action<'a>,
    /// The statements, in execution order. The last one makes the change; the others lock the rows that it rests on.
    pub statements: Vec<Statement<'a>>,
}

/// The change that a [`Command`] makes.
#[derive(Debug)]
#[non_exhaustive]
pub enum Action<'a> {
    /// An event becomes DONE, or its row is removed, if `node` is its owner as `fence` sees it: one row, or none.
    Complete {
        /// The node that delivers the event.
        node: &'a NodeId,
        /// The kind of its right to the row.
        fence: Fence,
        /// The row, its expected state, and the change that makes it DONE or removes it.
        verdict: &'a Verdict,
    },
    /// Nothing but the statements; only stores that have some ask for it.
    Mark,
    /// A savepoint is set, released or gone back to by one statement without values, on a database on which a failed statement leaves the
    /// transaction as it is: SQLite and MySQL. The statement is sent as text, since MySQL prepares none of its kind.
    Savepoint,
    /// A message of a consumer is recorded in the inbox: one row, unless it is there.
    Receive {
        /// The consumer's name.
        consumer: &'a str,
        /// The message's id.
        message_id: &'a str,
    },
}
