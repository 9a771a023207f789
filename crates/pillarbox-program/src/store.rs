//! The outbox's side of a database.

#[cfg(feature = "mysql")]
use pillarbox::{MysqlOptions, MysqlStore};
#[cfg(feature = "postgres")]
use pillarbox::{PostgresOptions, PostgresStore};
use pillarbox::{SqliteOptions, SqliteStore, TableName};

use crate::failure::Failure;

/// A SQLite file, created where it is missing.
///
/// # Errors
/// If it cannot be opened.
pub async fn sqlite(file: &str, table: &TableName) -> Result<SqliteStore, Failure> {
    Ok(SqliteOptions::new(file).table(table.to_string()).open().await?)
}

/// A PostgreSQL database.
///
/// # Errors
/// If the URL is wrong, or the server cannot be reached.
#[cfg(feature = "postgres")]
pub async fn postgres(url: &str, table: &TableName) -> Result<PostgresStore, Failure> {
    Ok(PostgresOptions::parse(url)?.table(table.to_string()).connect().await?)
}

/// A MySQL or MariaDB database.
///
/// # Errors
/// If the URL is wrong or names no database, or the server cannot be reached.
#[cfg(feature = "mysql")]
pub async fn mysql(url: &str, table: &TableName) -> Result<MysqlStore, Failure> {
    use pillarbox::Store as _;

    let store = MysqlOptions::parse(url)?.table(table.to_string()).connect().await?;
    // Such a session is in no database, where the tables could only be reported as missing. Its address, `host:port/`,
    // says so.
    if table.schema().is_none() && store.info().address.ends_with('/') {
        store.close().await;
        return Err(Failure::NoDatabase);
    }
    Ok(store)
}
