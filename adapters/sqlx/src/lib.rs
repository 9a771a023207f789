//! Writes Pillarbox events in [sqlx](https://docs.rs/sqlx) transactions.
//!
//! Features: `mysql`, `postgres`, `sqlite`. The guard of `Outbox::begin` works, and so
//! does a transaction of your own:
//!
//! ```text
//! let mut tx = outbox.begin(&pool).await?;
//! outbox.write(&mut tx, &event).await?;      // or &mut *tx, where a function was handed a `&mut PgConnection`
//! tx.commit().await?;
//!
//! let mut tx = pool.begin().await?;
//! let receipt = outbox.write(&mut tx, &event).await?;
//! outbox.commit(tx, receipt).await?;
//! ```
//!
//! Before `COMMIT` it is made sure that the transaction can be committed, and asked, in the same round trip, which rows were
//! not rolled back to a savepoint or by a nested transaction. The second is left out where a guard has lent its transaction to nobody
//! since its first event.
//!
//! A connection without a transaction has the same type as one in a transaction, so that it compiles; it is refused before any
//! SQL with [`WriteError::NoTransaction`](pillarbox_core::write::WriteError::NoTransaction). sqlx counts the transactions that
//! were begun through its own `begin` and `begin_with`; one begun by executing the text `BEGIN` is not seen and is refused
//! too. For a mode of its own, use `begin_with("BEGIN ISOLATION LEVEL SERIALIZABLE")`.
//!
//! # Cancellation
//!
//! A transaction that is dropped is rolled back before its connection does anything else, and `BEGIN` is seen through even if the future of
//! `Outbox::begin` is dropped. On MySQL a call that is dropped while its statement is prepared can leave the connection waiting for ever (read in
//! sqlx-mysql 0.9.0): let calls end, in a task of their own where the caller may be dropped.
//!
//! # Wrong things
//!
//! A pool does not type-check:
//!
#![cfg_attr(feature = "postgres", doc = "```compile_fail,E0277")]
#![cfg_attr(not(feature = "postgres"), doc = "```ignore")]
//! # use pillarbox_core::event::Envelope;
//! # use pillarbox_engine::run::Outbox;
//! # use pillarbox_sqlx as _;
//! async fn place(outbox: &Outbox, pool: &mut sqlx::PgPool, event: Envelope) {
//!     let _ = outbox.write(pool, event).await;
//! }
//! ```

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod binds;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod transaction;

#[cfg(feature = "sqlite")]
pub use sqlite::begin_immediate;

/// The transaction that a handler [works in](pillarbox_core::handle::in_transaction), on MySQL or MariaDB.
#[cfg(feature = "mysql")]
pub type MySqlTx = pillarbox_core::handle::HandlerTransaction<sqlx::MySqlTransaction<'static>, Sqlx>;

/// The transaction that a handler [works in](pillarbox_core::handle::in_transaction), on PostgreSQL.
///
/// ```
/// # use pillarbox_core::handle::{Delivery, in_transaction};
/// # use pillarbox_engine::run::Outbox;
/// # use pillarbox_memory::MemoryStore as PostgresStore;
/// # use pillarbox_sqlx::PgTx;
/// async fn book(delivery: Delivery, mut tx: PgTx) -> Result<(), sqlx::Error> {
///     let book = sqlx::query("INSERT INTO booking (event_id) VALUES ($1)").bind(delivery.id().as_str());
///     book.execute(&mut *tx).await?;
///     Ok(())
/// }
///
/// # async fn start(store: PostgresStore, pool: sqlx::PgPool) {
/// let outbox = Outbox::single_node(store).handle_type("payment.received", in_transaction(pool, book));
/// # }
/// ```
#[cfg(feature = "postgres")]
pub type PgTx = pillarbox_core::handle::HandlerTransaction<sqlx::PgTransaction<'static>, Sqlx>;

/// The transaction that a handler [works in](pillarbox_core::handle::in_transaction), on SQLite. It begins with the write lock, so the
/// store's [`writer`](https://docs.rs/pillarbox-sqlite/latest/pillarbox_sqlite/struct.SqliteStore.html#method.writer) is the pool to give.
#[cfg(feature = "sqlite")]
pub type SqliteTx = pillarbox_core::handle::HandlerTransaction<sqlx::SqliteTransaction<'static>, Sqlx>;

/// The marker that brings sqlx's transactions and Pillarbox's traits together; it is always inferred.
#[derive(Debug, Clone, Copy)]
pub struct Sqlx;
