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
//! not rolled back to a savepoint or by a nested transaction.
//!
//! A connection without a transaction has the same type as one in a transaction, so that it compiles; it is refused before any
//! SQL with [`WriteError::NoTransaction`](pillarbox_core::write::WriteError::NoTransaction). sqlx counts the transactions that
//! were begun through its own `begin` and `begin_with`; one begun by executing the text `BEGIN` is not seen and is refused
//! too. For a mode of its own, use `begin_with("BEGIN ISOLATION LEVEL SERIALIZABLE")`.

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod binds;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
mod transaction;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod uninterrupted;

#[cfg(feature = "sqlite")]
pub use sqlite::begin_immediate;

/// The marker that brings sqlx's transactions and Pillarbox's traits together; it is always inferred.
#[derive(Debug, Clone, Copy)]
pub struct Sqlx;
