//! Writes Pillarbox events in [sqlx](https://docs.rs/sqlx) transactions.
//!
//! Features: `mysql`, `postgres`, `sqlite`. Both forms of a transaction work, and so does the guard of
//! [`Outbox::begin`](pillarbox_core::run::Outbox::begin):
//!
//! ```text
//! let mut tx = pool.begin().await?;
//! outbox.write(&mut tx, &event).await?;      // or &mut *tx, where a function was handed a `&mut PgConnection`
//! tx.commit().await?;
//! ```
//!
//! A connection without a transaction is refused with
//! [`WriteError::NoTransaction`](pillarbox_core::error::WriteError::NoTransaction). sqlx counts the transactions that
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
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod uninterrupted;

#[cfg(feature = "sqlite")]
pub use sqlite::begin_immediate;

/// The marker that brings sqlx's transactions and Pillarbox's traits together; it is always inferred.
#[derive(Debug, Clone, Copy)]
pub struct Sqlx;
