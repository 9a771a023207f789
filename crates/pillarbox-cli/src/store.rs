//! The outbox's side of a database.

use std::sync::Arc;

use pillarbox::store::TableName;
use pillarbox::{PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Store};

use crate::address::Address;
use crate::failure::Failure;

/// The store at `address`, with its event table called `table`.
pub(crate) async fn open(address: &Address, table: &TableName) -> Result<Arc<dyn Store>, Failure> {
    Ok(match address {
        Address::Sqlite(file) => Arc::new(sqlite(file, table).await?),
        Address::Postgres(url) => Arc::new(postgres(url, table).await?),
    })
}

/// A SQLite file, created where it is missing.
pub(crate) async fn sqlite(file: &str, table: &TableName) -> Result<SqliteStore, Failure> {
    Ok(SqliteOptions::new(file).table(table.to_string()).open().await?)
}

/// A PostgreSQL database.
pub(crate) async fn postgres(url: &str, table: &TableName) -> Result<PostgresStore, Failure> {
    Ok(PostgresOptions::parse(url)?.table(table.to_string()).connect().await?)
}

/// The SQL that `migrate` would run on an empty database of that kind; none is opened for it.
pub(crate) fn migration_sql(address: &Address, table: &TableName) -> Result<String, Failure> {
    let table = table.to_string();
    Ok(match address {
        Address::Sqlite(file) => SqliteOptions::new(file).table(table).migration_sql()?,
        Address::Postgres(url) => PostgresOptions::parse(url)?.table(table).migration_sql()?,
    })
}
