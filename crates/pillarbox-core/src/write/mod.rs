//! From the caller's transaction to a row: one statement per batch, no connection of its own, no task, no broker.

mod connection;
mod fan_out;
mod hook;
mod insert;
mod open;
mod probe;
mod receipts;
mod row;
mod statement;
mod transaction;
mod written;

pub use connection::{Connection, Insert};
pub(crate) use fan_out::{Accepts, FanOut, Recipient};
pub use hook::WriterHook;
pub(crate) use hook::WriterHooks;
pub use insert::insert;
pub(crate) use insert::insert_rows;
pub use open::ConnectionId;
pub(crate) use open::OpenTransactions;
pub use probe::Probe;
pub(crate) use probe::{Fate, Found};
pub use receipts::Receipts;
pub use row::NewRow;
pub use statement::{Bind, Dialect, Statement};
pub use transaction::{Begin, Finish, Guarded, Transaction};
pub use written::Written;
