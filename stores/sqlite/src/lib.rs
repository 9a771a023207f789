//! The SQLite store of Pillarbox.
//!
//! SQLite lets one connection write at a time, and its own way of waiting for the write lock lets a busy writer starve
//! the others. So all writes of a process should go through one connection with a fair queue in front of it: the store
//! writes through it, and [`SqliteStore::writer`] offers it to the service for its own transactions.
//!
//! ```no_run
//! # async fn example(outbox: pillarbox_engine::run::Outbox) -> Result<(), Box<dyn std::error::Error>> {
//! use pillarbox_core::store::Store as _;
//! use pillarbox_sqlite::SqliteStore;
//!
//! let store = SqliteStore::open("shop.db").await?;
//! store.migrate().await?;
//! // … an outbox is started on the store …
//! let tx = outbox.begin(store.writer()).await?;
//! tx.commit().await?;
//! # Ok(()) }
//! ```
//!
//! A pool of the service's own on the same file works too; it then competes with the store for the lock.

mod admin;
mod audit;
mod claim;
mod clock;
mod complete;
mod database;
mod database_file;
mod error;
pub mod examine;
mod fetch;
mod identity;
mod inbox;
mod insert;
mod json;
mod location;
mod log_files;
mod migrate;
mod options;
mod order;
mod ownership;
#[cfg(test)]
mod plans;
mod rebalance;
mod reclaim;
mod row;
mod settle;
mod sql;
mod statistics;
mod store;

pub use options::SqliteOptions;
pub use store::SqliteStore;
