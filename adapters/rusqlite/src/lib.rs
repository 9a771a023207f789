//! Writes Pillarbox events in [rusqlite](https://docs.rs/rusqlite) transactions.
//!
//! rusqlite blocks its thread, so that events are written by `Outbox::blocking`, on a thread that may wait:
//!
//! ```no_run
//! # use pillarbox_core::event::Envelope;
//! # use pillarbox_engine::run::Outbox;
//! use pillarbox_rusqlite as _;
//!
//! # fn place(outbox: &Outbox, conn: &mut rusqlite::Connection) -> Result<(), Box<dyn std::error::Error>> {
//! let event = Envelope::json("order.placed", r#"{"order_id": "o-1"}"#)?;
//!
//! let outbox = outbox.blocking();
//! let mut tx = outbox.begin(&mut *conn)?; // `BEGIN IMMEDIATE`
//! tx.execute("INSERT INTO orders (id) VALUES ('o-1')", [])?;
//! outbox.write(&mut tx, event)?;
//! tx.commit()?;
//!
//! // Or a transaction of your own.
//! let mut tx = conn.transaction()?;
//! let receipt = outbox.write(&mut tx, Envelope::json("order.placed", r#"{"order_id": "o-2"}"#)?)?;
//! outbox.commit(tx, receipt)?;
//! # Ok(())
//! # }
//! ```
//!
//! The `use … as _` makes the compiler look into this crate, nothing of which needs a name; a crate that depends on `pillarbox`
//! with its feature `rusqlite` does without.
//!
//! Events may be written on a [`Savepoint`](rusqlite::Savepoint) of the transaction as well. What was rolled back to a
//! savepoint is not delivered: a commit asks for the rows that are left.
//!
//! A connection outside a transaction is no place to write events, and does not type-check:
//!
//! ```compile_fail,E0277
//! # use pillarbox_core::event::Envelope;
//! # use pillarbox_engine::run::Outbox;
//! # use pillarbox_rusqlite as _;
//! fn place(outbox: &Outbox, conn: &mut rusqlite::Connection, event: Envelope) {
//!     let _ = outbox.blocking().write(conn, event);
//! }
//! ```
//!
//! # One SQLite
//!
//! A program links one SQLite. That of this crate is rusqlite 0.39, whose SQLite is the one of sqlx 0.9, on which the store is
//! built; a later rusqlite does not build beside it. Both open the same file and take turns by SQLite's lock.
//! rusqlite waits up to 5 s for it; set `busy_timeout` if your transactions take longer.

mod begin;
mod insert;

/// The marker that brings the driver's transactions and Pillarbox's traits together; it is always inferred.
#[derive(Debug, Clone, Copy)]
pub struct Rusqlite;
