//! Events written in the transactions of sqlx, on each of its databases.

#[path = "../alike/mod.rs"]
mod alike;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
