//! The PostgreSQL store of [Pillarbox](https://docs.rs/pillarbox), a transactional outbox.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use pillarbox_core::store::Store;
//! use pillarbox_postgres::{PostgresOptions, PostgresStore};
//!
//! let store = PostgresStore::connect("postgres://shop@db.internal/shop?sslmode=verify-full").await?;
//! store.migrate().await?;
//!
//! // Another table, through PgBouncer in transaction mode:
//! let billing = PostgresOptions::parse("postgres://shop@pool.internal:6432/shop")?
//!     .table("billing.outbox_event")
//!     .pooler(true)
//!     .connect()
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! A certificate of the client's own is named in the URL (`sslcert`, `sslkey`). A connector of one's own, for settings that no URL can express, is given
//! with the driver's configuration:
//!
//! ```no_run
//! # async fn example(tls: tokio_postgres_rustls::MakeRustlsConnect) -> Result<(), Box<dyn std::error::Error>> {
//! use pillarbox_postgres::PostgresOptions;
//!
//! let mut config = tokio_postgres::Config::new();
//! config.host("db.internal").user("shop").dbname("shop").ssl_mode(tokio_postgres::config::SslMode::Require);
//! let store = PostgresOptions::from_config(config, tls).connect().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The SQL stands in `sql/`, one file per verb, and in `migrations/`. `url` and `tls` hold the database's address and its
//! trust, `session` owns the connections, `error` turns the driver's errors into ours; the other files are the
//! port's methods.

mod admin;
mod audit;
mod claim;
mod clock;
mod compatible;
mod complete;
mod connector;
mod error;
pub mod examine;
mod fetch;
mod identity;
mod inbox;
mod insert;
mod options;
mod order;
mod ownership;
#[cfg(test)]
mod plans;
mod positions;
mod read_point;
mod rebalance;
mod reclaim;
mod row;
mod rows;
mod schema;
mod scope;
mod session;
mod settle;
mod sql;
mod store;
mod tls;
mod types;
mod url;
mod wakeup;

pub use options::PostgresOptions;
pub use store::PostgresStore;
