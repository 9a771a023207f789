//! Writes Pillarbox events in [mysql_async](https://docs.rs/mysql_async) transactions.
//!
//! ```no_run
//! # use pillarbox_core::event::Envelope;
//! # use pillarbox_engine::run::Outbox;
//! use mysql_async::prelude::Queryable as _;
//! use pillarbox_mysql_async as _;
//!
//! # async fn place(outbox: &Outbox, pool: mysql_async::Pool) -> Result<(), Box<dyn std::error::Error>> {
//! let event = Envelope::json("order.placed", r#"{"order_id": "o-1"}"#)?;
//!
//! let mut tx = outbox.begin(&pool).await?; // or `&mut conn`
//! tx.query_drop("INSERT INTO orders (id) VALUES ('o-1')").await?;
//! outbox.write(&mut tx, event).await?;
//! tx.commit().await?;
//!
//! // Or a transaction of your own.
//! let mut tx = pool.start_transaction(mysql_async::TxOpts::default()).await?;
//! let receipt = outbox.write(&mut tx, Envelope::json("order.placed", r#"{"order_id": "o-2"}"#)?).await?;
//! outbox.commit(tx, receipt).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The `use … as _` makes the compiler look into this crate, nothing of which needs a name; a crate that depends on `pillarbox`
//! with its feature `mysql-async` does without.
//!
//! A commit asks in a round trip of its own which rows were not rolled back to a savepoint, unless a guard has lent its transaction to
//! nobody since its first event, or nothing could be delivered from memory and no hook wants to know.
//!
//! A connection outside a transaction is no place to write events, and does not type-check:
//!
//! ```compile_fail,E0277
//! # use pillarbox_core::event::Envelope;
//! # use pillarbox_engine::run::Outbox;
//! # use pillarbox_mysql_async as _;
//! async fn place(outbox: &Outbox, conn: &mut mysql_async::Conn, event: Envelope) {
//!     let _ = outbox.write(conn, event).await;
//! }
//! ```
//!
//! # When the server ends the transaction by itself
//!
//! After a deadlock MySQL has rolled back the whole transaction, and what the connection is sent next commits by itself.
//! The driver does not notice. Here it is noticed: a write into such a transaction fails, and so does the guard's commit.
//!
//! # Cancellation
//!
//! The driver keeps what [`Begin`](pillarbox_core::write::Begin) and [`Connection`](pillarbox_core::write::Connection) ask
//! for (read in mysql_async 0.37.1). A connection whose statement was dropped half-way, `START TRANSACTION` and `COMMIT`
//! included, is never used again, and the server rolls back; the outcome of a `COMMIT` is then unknown. A transaction that
//! is dropped is rolled back before its connection does anything else.

mod begin;
mod insert;
mod open;

/// The transaction that a handler [works in](pillarbox_core::handle::in_transaction).
///
/// ```
/// # use mysql_async::prelude::Queryable as _;
/// # use pillarbox_core::handle::{Delivery, in_transaction};
/// # use pillarbox_engine::run::Outbox;
/// # use pillarbox_memory::MemoryStore as MysqlStore;
/// # use pillarbox_mysql_async::MysqlTx;
/// async fn book(delivery: Delivery, mut tx: MysqlTx) -> Result<(), mysql_async::Error> {
///     tx.exec_drop("INSERT INTO booking (event_id) VALUES (?)", (delivery.id().as_str(),)).await
/// }
///
/// # async fn start(store: MysqlStore, pool: mysql_async::Pool) {
/// let outbox = Outbox::single_node(store).handle_type("payment.received", in_transaction(pool, book));
/// # }
/// ```
pub type MysqlTx = pillarbox_core::handle::HandlerTransaction<mysql_async::Transaction<'static>, MysqlAsync>;

/// The marker that brings the driver's transactions and Pillarbox's traits together; it is always inferred.
#[derive(Debug, Clone, Copy)]
pub struct MysqlAsync;
