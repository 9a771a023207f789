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

/// The SQL that `migrate` would run on an empty database like the one at `address`, in which nothing is changed.
pub(crate) async fn migration_sql(address: &Address, table: &TableName) -> Result<String, Failure> {
    // Opening a SQLite file that is missing creates it; one that is thrown away has the same SQL.
    let folder;
    let anywhere;
    let address = match address {
        Address::Sqlite(_) => {
            folder = tempfile::tempdir()?;
            anywhere = Address::Sqlite(folder.path().join("empty.db").display().to_string());
            &anywhere
        }
        Address::Postgres(_) => address,
    };
    let store = open(address, table).await?;
    let sql = store.migration_sql();
    store.close().await;
    Ok(sql)
}
