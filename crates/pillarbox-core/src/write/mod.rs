//! From the caller's transaction to a row: one statement per batch, no connection of its own, no task, no broker.

mod blocking;
mod connection;
mod error;
mod hook;
mod insert;
mod open;
mod probe;
mod receipts;
mod savepoint;
mod sink;
mod transaction;
mod uninterrupted;
mod unique;
mod writer;
mod written;

pub use crate::row::NewRow;
pub use crate::store::{Action, Bind, Command, Dialect, Lookup, Question, Statement};
#[doc(hidden)]
pub use blocking::now;
pub use blocking::{BlockingTransaction, BlockingWriter, Synchronous};
pub use connection::{Connection, Insert};
pub use error::WriteError;
pub use hook::WriterHook;
#[doc(hidden)]
pub use hook::WriterHooks;
pub use insert::insert;
#[doc(hidden)]
pub use insert::insert_rows;
pub use open::ConnectionId;
#[doc(hidden)]
pub use open::OpenTransactions;
pub use probe::Probe;
#[doc(hidden)]
pub use probe::{Found, Presence};
pub use receipts::Receipts;
pub use sink::CommitSink;
pub use transaction::{Begin, Finish, Guarded, Transaction};
#[doc(hidden)]
pub use uninterrupted::Uninterrupted;
#[doc(hidden)]
pub use unique::Inserted;
pub use unique::{ENDED, Skipped};
pub use writer::Writer;
#[doc(hidden)]
pub use writer::{RowMaker, WriterParts};
pub use written::Written;
