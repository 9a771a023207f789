//! From the caller's transaction to a row: one statement per batch, no connection of its own, no task, no broker.

mod connection;
mod fan_out;
mod hook;
mod insert;
mod row;
mod statement;
mod transaction;
mod written;

pub use connection::{Connection, Insert};
pub(crate) use fan_out::FanOut;
pub use hook::WriterHook;
pub(crate) use hook::WriterHooks;
pub use insert::insert;
pub(crate) use insert::insert_rows;
pub use row::NewRow;
pub use statement::{Bind, Dialect, Statement};
pub use transaction::{Begin, Finish, Guarded, Transaction};
pub use written::Written;
