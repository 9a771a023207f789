//! The MySQL and MariaDB store of [Pillarbox](https://docs.rs/pillarbox), a transactional outbox.
//!
//! Its tests run on MariaDB 10.11. It is written for MySQL 8 too, on which no test runs.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use pillarbox_core::store::Store;
//! use pillarbox_mysql::{MysqlOptions, MysqlStore};
//!
//! let store = MysqlStore::connect("mysql://shop@db.internal/shop?ssl-mode=verify_identity").await?;
//! store.migrate().await?;
//!
//! // A table in another database:
//! let billing = MysqlOptions::parse("mariadb://shop@db.internal/shop")?.table("billing.outbox_event").connect().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The SQL stands in `sql/`, one file per verb, and in `migrations/`. `url` and `tls` hold the database's address and its
//! trust, `session` owns the connections, `literal` puts values into statements, `answer` takes them out of rows,
//! `error` turns the driver's errors into ours; the other files are the port's methods.

mod admin;
mod answer;
mod audit;
mod claim;
mod clock;
mod complete;
mod error;
pub mod examine;
mod fetch;
mod identity;
mod inbox;
mod insert;
mod literal;
mod options;
mod order;
mod ownership;
#[cfg(test)]
mod plans;
mod rebalance;
mod reclaim;
mod row;
mod schema;
mod session;
mod settle;
mod sql;
mod store;
mod tls;
mod url;

pub use options::MysqlOptions;
pub use store::MysqlStore;
