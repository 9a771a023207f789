use std::error::Error;
use std::future::Future;
use std::sync::Arc;

use super::{Command, ConnectionId, Dialect, Lookup, NewRow, Receipts, Statement};

/// A transaction of the user's, on which events can be written. Adapter crates implement it for their driver's types.
///
/// `M` is a marker type local to the adapter crate. It exists for the orphan rule only: it lets a crate that owns
/// neither this trait nor the driver's type bring the two together. It is always inferred.
///
/// A type that may not leave its thread, such as a transaction of rusqlite, can be one: futures are `Send`, and so its
/// methods do their work when they are called.
#[diagnostic::on_unimplemented(
    message = "events cannot be written, nor messages received, on `{Self}`",
    label = "not a transaction that Pillarbox knows",
    note = "pass the transaction itself, such as `&mut tx`; a pool will not do, and a connection without a transaction is refused when it runs, because events and received messages commit with the business data",
    note = "transactions are known by the adapter of their driver: pillarbox feature `sqlx-postgres`, `sqlx-mysql`, `sqlx-sqlite`, `tokio-postgres`, `mysql-async`, `sea-orm-postgres`, `sea-orm-mysql`, `sea-orm-sqlite`, `diesel-postgres`, `diesel-sqlite`, `diesel-async-postgres`, `diesel-async-mysql` or `rusqlite`",
    note = "another major version of a driver has other types, which are not known: `cargo tree --duplicates` shows both"
)]
pub trait Connection<M> {
    /// The driver's error.
    type Error: Error + Send + Sync + 'static;

    /// The database this connection speaks to. Some drivers know it at run time only.
    fn dialect(&self) -> Dialect;

    /// True if a transaction is open; `None` where the driver cannot tell. It sends nothing.
    fn in_transaction(&mut self) -> Option<bool> {
        None
    }

    /// Executes the insert inside the open transaction and returns the rows' `seq` in the order of the rows.
    ///
    /// # Behavior
    /// - runs the statements in order, on this connection, and nothing else
    /// - each statement returns one `seq` per row it inserts, as a 64-bit integer in its only column
    /// - may be dropped at any await; the transaction is then rolled back or usable, as the driver defines
    fn insert(&mut self, insert: &Insert<'_>) -> impl Future<Output = Result<Vec<i64>, Self::Error>> + Send;

    /// Makes a change inside the open transaction, and returns the number of rows that its last statement inserted, changed or deleted.
    ///
    /// # Behavior
    /// - runs the statements in order, on this connection, and nothing else
    /// - may be dropped at any await; the transaction is then rolled back or usable, as the driver defines
    fn run(&mut self, command: &Command<'_>) -> impl Future<Output = Result<u64, Self::Error>> + Send;

    /// Reads rows of the event table as the open transaction sees them: what it has written is there, committed or not.
    ///
    /// # Behavior
    /// - runs the statement on this connection, and nothing else
    /// - returns the text in its only column, in the order of the rows
    /// - may be dropped at any await; the transaction is then rolled back or usable, as the driver defines
    fn read(&mut self, lookup: &Lookup<'_>) -> impl Future<Output = Result<Vec<String>, Self::Error>> + Send;

    /// Identifies the driver's connection, by which a guard recognises what is written on it through a reborrowed
    /// connection or a nested transaction.
    ///
    /// The object it names keeps its place for as long as the outermost transaction keeps its own. A nested transaction names
    /// the same object as the one around it.
    fn id(&self) -> ConnectionId {
        ConnectionId::of(self)
    }

    /// The receipts of a guard; `None` for a transaction of the driver's own.
    #[doc(hidden)]
    fn receipts(&self) -> Option<&Arc<Receipts>> {
        None
    }
}

/// The insert that an adapter is asked for: rows, and the statements that insert them.
#[derive(Debug)]
pub struct Insert<'a> {
    /// The rows, in write order.
    pub rows: &'a [NewRow],
    /// The statements, in execution order: one, unless the database limits the binds of a statement.
    pub statements: Vec<Statement<'a>>,
}
