use std::error::Error;

use super::Dialect;
use crate::error::BoxError;
use crate::event::{EventId, InvalidEvent};

/// A write failed; `E` is the driver's own error.
///
/// No event of the call was written. After [`WrongCount`](Self::WrongCount), on any database, some of them may be in the transaction: roll it back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError<E: Error + 'static> {
    /// An event is malformed. The transaction was not touched and stays usable.
    #[error(transparent)]
    Invalid(#[from] InvalidEvent),
    /// A [`WriterHook`](super::WriterHook) refused the events. The transaction was not touched and stays usable.
    #[error("a writer hook refused the events: {0}")]
    Hook(#[source] BoxError),
    /// The connection is of another kind of database than the outbox. The transaction was not touched.
    #[error(
        "this outbox keeps its table in {outbox}, the connection is to {connection}; write through a transaction of the database that holds the outbox table"
    )]
    WrongDatabase {
        /// The outbox's database.
        outbox: Dialect,
        /// The connection's database.
        connection: Dialect,
    },
    /// The connection has no open transaction, so the events could be committed without the business data.
    #[error("no transaction is open on this connection; begin one and write the event and the business rows in it")]
    NoTransaction,
    /// An event with a unique key has the id of another one, on a database whose driver does not report it.
    #[error("event `{id}` exists already; give every event an id of its own")]
    Duplicate {
        /// The id.
        id: EventId,
    },
    /// The database has not inserted the rows that it was told to, as where a trigger of the event table drops some. On any database, some of the
    /// events may be in the transaction: roll it back.
    #[error(
        "the database has inserted {inserted} rows instead of {rows}: a trigger or rule of the event table drops or adds some; roll the transaction back, and remove that"
    )]
    WrongCount {
        /// The number of rows to insert.
        rows: usize,
        /// The number of rows that the database says it has inserted.
        inserted: usize,
    },
    /// The driver reported an error. On PostgreSQL the transaction can only be rolled back now; elsewhere it may go on, and is as it was before
    /// the call, unless the database has rolled back all of it, as after a deadlock or with a full disk: then the next event that is
    /// written in it fails as well, and so does its commit through the outbox.
    #[error("the events could not be inserted: {0}")]
    Database(#[source] E),
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;
    use crate::handle::HandlerError;

    #[test]
    fn the_drivers_error_is_found_by_its_type_and_told_once() {
        let error = HandlerError::classify(WriteError::Database(fmt::Error));
        assert!(error.causes().any(|cause| cause.is::<fmt::Error>()), "rules for retries know it by its type");
        assert_eq!(error.text(), format!("the events could not be inserted: {}", fmt::Error));
    }
}
