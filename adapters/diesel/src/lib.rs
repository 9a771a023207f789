//! Writes Pillarbox events in transactions of [diesel](https://docs.rs/diesel) and
//! [diesel-async](https://docs.rs/diesel-async).
//!
//! | Feature | Connection | Written by |
//! |---|---|---|
//! | `postgres` | `diesel::PgConnection`; needs libpq | `outbox.blocking()` |
//! | `sqlite` | `diesel::SqliteConnection` | `outbox.blocking()` |
//! | `async-postgres` | `diesel_async::AsyncPgConnection` | `outbox` |
//! | `async-mysql` | `diesel_async::AsyncMysqlConnection` | `outbox` |
//!
//! diesel's own connections block their thread: call them where that is allowed, such as in `tokio::task::spawn_blocking` or
//! `interact` of deadpool.
//!
#![cfg_attr(feature = "postgres", doc = "```no_run")]
#![cfg_attr(not(feature = "postgres"), doc = "```ignore")]
//! # use pillarbox_core::event::Envelope;
//! # use pillarbox_engine::run::Outbox;
//! use diesel::prelude::*;
//! use pillarbox_diesel as _;
//!
//! # fn place(outbox: &Outbox, conn: &mut PgConnection) -> Result<(), Box<dyn std::error::Error>> {
//! let event = Envelope::json("order.placed", r#"{"order_id": "o-1"}"#)?;
//!
//! let outbox = outbox.blocking();
//! let mut tx = outbox.begin(&mut *conn)?; // `&mut *pooled` of a pool
//! diesel::sql_query("INSERT INTO orders (id) VALUES ('o-1')").execute(&mut *tx)?;
//! outbox.write(&mut tx, event)?;
//! tx.commit()?;
//!
//! // Or in diesel's own transaction. Without the receipt the event is delivered from the table, within some tens of milliseconds.
//! let event = Envelope::json("order.placed", r#"{"order_id": "o-2"}"#)?;
//! let receipt = conn.transaction(|conn| {
//!     diesel::sql_query("INSERT INTO orders (id) VALUES ('o-2')").execute(conn)?;
//!     let receipt = outbox.write(conn, event)?;
//!     Ok::<_, Box<dyn std::error::Error>>(receipt)
//! })?;
//! outbox.notify_committed(receipt);
//! # Ok(())
//! # }
//! ```
//!
//! diesel-async:
//!
#![cfg_attr(feature = "async-postgres", doc = "```no_run")]
#![cfg_attr(not(feature = "async-postgres"), doc = "```ignore")]
//! # use pillarbox_core::event::Envelope;
//! # use pillarbox_engine::run::Outbox;
//! use diesel_async::pooled_connection::deadpool::Pool;
//! use diesel_async::{AsyncConnection as _, AsyncPgConnection, RunQueryDsl as _};
//! use pillarbox_diesel as _;
//!
//! # async fn place(outbox: &Outbox, pool: &Pool<AsyncPgConnection>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let event = Envelope::json("order.placed", r#"{"order_id": "o-1"}"#)?;
//!
//! let mut tx = outbox.begin(pool).await?; // or `&mut conn`, an `AsyncPgConnection`
//! diesel::sql_query("INSERT INTO orders (id) VALUES ('o-1')").execute(&mut *tx).await?;
//! outbox.write(&mut tx, event).await?;
//! tx.commit().await?;
//!
//! let mut conn = pool.get().await?;
//! let event = Envelope::json("order.placed", r#"{"order_id": "o-2"}"#)?;
//! let receipt = conn.transaction(async |conn| {
//!     diesel::sql_query("INSERT INTO orders (id) VALUES ('o-2')").execute(conn).await?;
//!     let receipt = outbox.write(conn, event).await?;
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(receipt)
//! }).await?;
//! outbox.notify_committed(receipt);
//! # Ok(())
//! # }
//! ```
//!
//! The `use … as _` makes the compiler look into this crate, nothing of which needs a name; a crate that depends on `pillarbox` with a
//! feature such as `diesel-postgres` does without.
//!
//! Before the guard's `COMMIT` it is made sure that the transaction can be committed, and asked which rows were not rolled back
//! to a savepoint or by a nested transaction. The second is left out where the guard has lent its connection to nobody since its first event.
//!
//! A connection has the same type in a transaction as outside of one, so that it compiles; it is refused before any SQL with
//! [`WriteError::NoTransaction`](pillarbox_core::write::WriteError::NoTransaction). diesel counts the transactions that it has begun;
//! one that was begun by executing the text `BEGIN` is refused too. The guard's `begin` sees such a one on SQLite alone: on PostgreSQL the
//! guard's commit or rollback ends it, and on MySQL the guard's `BEGIN` commits it. A pool does not type-check:
//!
#![cfg_attr(feature = "async-postgres", doc = "```compile_fail,E0277")]
#![cfg_attr(not(feature = "async-postgres"), doc = "```ignore")]
//! # use pillarbox_core::event::Envelope;
//! # use pillarbox_engine::run::Outbox;
//! # use diesel_async::{AsyncPgConnection, pooled_connection::deadpool::Pool};
//! # use pillarbox_diesel as _;
//! async fn place(outbox: &Outbox, pool: &mut Pool<AsyncPgConnection>, event: Envelope) {
//!     let _ = outbox.write(pool, event).await;
//! }
//! ```
//!
#![cfg_attr(feature = "postgres", doc = "```compile_fail,E0277")]
#![cfg_attr(not(feature = "postgres"), doc = "```ignore")]
//! # use diesel::{PgConnection, r2d2::{ConnectionManager, Pool}};
//! # use pillarbox_core::event::Envelope;
//! # use pillarbox_engine::run::Outbox;
//! # use pillarbox_diesel as _;
//! fn place(outbox: &Outbox, pool: &mut Pool<ConnectionManager<PgConnection>>, event: Envelope) {
//!     let _ = outbox.blocking().write(pool, event);
//! }
//! ```
//!
//! # SQLite's lock
//!
//! SQLite has one writer at a time. The guard's `begin` waits up to 5 s for the lock, or for the connection's `busy_timeout` if it has one. diesel's own
//! transactions do not wait unless it is set, by `PRAGMA busy_timeout = 5000` on each connection; begin them with `immediate_transaction`.
//!
//! # Cancellation
//!
//! A guard that is dropped sends `ROLLBACK` before its connection does anything else. A connection of MySQL, and any of which a
//! `BEGIN` or `COMMIT` is dropped half-way, is broken by diesel-async's account then (read in diesel-async 0.9.2): its pool throws it
//! away when it is next asked for it, and so must you with one of your own.

#[cfg(any(feature = "async-mysql", feature = "async-postgres"))]
mod awaited;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod blocking;
#[cfg(any(feature = "async-mysql", feature = "async-postgres", feature = "postgres", feature = "sqlite"))]
mod rows;
#[cfg(any(feature = "async-mysql", feature = "async-postgres", feature = "postgres", feature = "sqlite"))]
mod statement;

#[cfg(any(feature = "async-mysql", feature = "async-postgres"))]
pub use awaited::AsyncTransaction;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use blocking::Transaction;

/// The transaction that a handler [works in](pillarbox_core::handle::in_transaction), of a deadpool of diesel-async's whose connections
/// are `C`.
///
/// ```
/// # #[cfg(feature = "async-postgres")]
/// # mod example {
/// # use pillarbox_core::error::BoxError;
/// # use pillarbox_core::handle::{Delivery, in_transaction};
/// # use pillarbox_engine::run::Outbox;
/// # use pillarbox_memory::MemoryStore as PostgresStore;
/// # use pillarbox_diesel::PooledTx;
/// use diesel_async::pooled_connection::deadpool::Pool;
/// use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
///
/// async fn book(_: Delivery, mut tx: PooledTx<AsyncPgConnection>) -> Result<(), BoxError> {
///     tx.batch_execute("INSERT INTO booking (amount) VALUES (1)").await?;
///     Ok(())
/// }
///
/// # async fn start(store: PostgresStore, pool: Pool<AsyncPgConnection>) {
/// let outbox = Outbox::single_node(store).handle_type("payment.received", in_transaction(pool, book));
/// # }
/// # }
/// ```
#[cfg(any(feature = "async-mysql", feature = "async-postgres"))]
pub type PooledTx<C> = pillarbox_core::handle::HandlerTransaction<
    AsyncTransaction<diesel_async::pooled_connection::deadpool::Object<C>>,
    Diesel,
>;

/// The marker that brings diesel's connections and Pillarbox's traits together; it is always inferred.
#[derive(Debug, Clone, Copy)]
pub struct Diesel;
