use std::error::Error;

use crate::store::Dialect;

/// The inbox could not tell whether a message was received before. `E` is the driver's own error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InboxError<E: Error + 'static> {
    /// The message's id is one that not every database can keep. The transaction was not touched and stays usable.
    #[error("the message id {problem}; {remedy}")]
    InvalidId {
        /// The problem with it: "is empty".
        problem: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The connection is of another kind of database than the inbox. The transaction was not touched.
    #[error(
        "this inbox keeps its table in {inbox}, the connection is to {connection}; receive messages in a transaction of the database that holds the inbox"
    )]
    WrongDatabase {
        /// The inbox's database.
        inbox: Dialect,
        /// The connection's database.
        connection: Dialect,
    },
    /// The connection has no open transaction, so the message could be recorded without the effects of handling it.
    #[error("no transaction is open on this connection; begin one, and receive and handle the message in it")]
    NoTransaction,
    /// The driver reported an error; in most databases the transaction can only be rolled back now.
    #[error("the message could not be recorded in the inbox: {0}")]
    Database(#[source] E),
}
