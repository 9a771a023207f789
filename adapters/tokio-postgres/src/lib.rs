//! Writes Pillarbox events in [tokio-postgres](https://docs.rs/tokio-postgres) and
//! [deadpool-postgres](https://docs.rs/deadpool-postgres) transactions.
//!
//! ```no_run
//! # use pillarbox_core::event::Envelope;
//! # use pillarbox_engine::run::Outbox;
//! use pillarbox_tokio_postgres as _;
//!
//! # async fn place(outbox: &Outbox, client: &mut deadpool_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let event = Envelope::json("order.placed", r#"{"order_id": "o-1"}"#)?;
//!
//! let mut tx = outbox.begin(&mut *client).await?; // or deadpool's `&pool`
//! tx.execute("INSERT INTO orders (id) VALUES ('o-1')", &[]).await?;
//! outbox.write(&mut tx, event).await?;
//! tx.commit().await?;
//!
//! // Or a transaction of your own.
//! let mut tx = client.transaction().await?;
//! let receipt = outbox.write(&mut tx, Envelope::json("order.placed", r#"{"order_id": "o-2"}"#)?).await?;
//! outbox.commit(tx, receipt).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The `use … as _` makes the compiler look into this crate, nothing of which needs a name; a crate that depends on `pillarbox`
//! with its feature `tokio-postgres` does without.
//!
//! Before `COMMIT`, and in the same round trip, it is made sure that the transaction can be committed, and asked which rows
//! were not rolled back to a savepoint. The second is left out where a guard has lent its transaction to nobody since its first event.
//!
//! A client outside a transaction is no place to write events, and does not type-check:
//!
//! ```compile_fail,E0277
//! # use pillarbox_core::event::Envelope;
//! # use pillarbox_engine::run::Outbox;
//! # use pillarbox_tokio_postgres as _;
//! async fn place(outbox: &Outbox, client: &mut tokio_postgres::Client, event: Envelope) {
//!     let _ = outbox.write(client, event).await;
//! }
//! ```
//!
//! ```compile_fail,E0277
//! # use pillarbox_core::event::Envelope;
//! # use pillarbox_engine::run::Outbox;
//! # use pillarbox_tokio_postgres as _;
//! async fn place(outbox: &Outbox, client: &mut deadpool_postgres::Client, event: Envelope) {
//!     let _ = outbox.write(client, event).await;
//! }
//! ```
//!
//! # Cancellation
//!
//! Both drivers keep what [`Begin`](pillarbox_core::write::Begin) and
//! [`Connection`](pillarbox_core::write::Connection) ask for (read in tokio-postgres 0.7.18 and deadpool-postgres 0.14.2).
//! A `transaction()` that is dropped before `BEGIN` was answered queues a `ROLLBACK` behind it, as does a transaction that
//! is dropped; whatever the connection is used for next comes after that. A `COMMIT` is sent when its future is first
//! polled; dropped later, it still happens, and its outcome is unknown.

mod begin;
mod bind;
mod insert;
mod pooled;

pub use pooled::PooledTransaction;

/// The transaction that a handler [works in](pillarbox_core::handle::in_transaction), of a deadpool.
///
/// ```
/// # use pillarbox_core::handle::{Delivery, in_transaction};
/// # use pillarbox_engine::run::Outbox;
/// # use pillarbox_memory::MemoryStore as PostgresStore;
/// # use pillarbox_tokio_postgres::PooledTx;
/// async fn book(delivery: Delivery, tx: PooledTx) -> Result<(), tokio_postgres::Error> {
///     tx.execute("INSERT INTO booking (event_id) VALUES ($1)", &[&delivery.id().as_str()]).await?;
///     Ok(())
/// }
///
/// # async fn start(store: PostgresStore, pool: deadpool_postgres::Pool) {
/// let outbox = Outbox::single_node(store).handle_type("payment.received", in_transaction(pool, book));
/// # }
/// ```
pub type PooledTx = pillarbox_core::handle::HandlerTransaction<PooledTransaction, TokioPostgres>;

/// The marker that brings the drivers' transactions and Pillarbox's traits together; it is always inferred.
#[derive(Debug, Clone, Copy)]
pub struct TokioPostgres;
