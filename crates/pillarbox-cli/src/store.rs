//! The outbox that a command works on.

use std::str::FromStr as _;
use std::sync::Arc;

use pillarbox::{MysqlOptions, PostgresOptions, SqliteOptions, Store, TableName};
use pillarbox_program::address::Address;
use pillarbox_program::failure::about_option;
use pillarbox_program::store::{mysql, postgres, sqlite};
use sqlx::sqlite::SqliteConnectOptions;

use crate::args::Target;
use crate::failure::Failure;

/// The outbox that a command works on. Its tables have to exist; nothing is created.
pub(crate) async fn existing(target: &Target) -> Result<Arc<dyn Store>, Failure> {
    let store = at(target).await?;
    store.check().await.map_err(|error| Failure::of_check(error, target))?;
    Ok(store)
}

/// Works on the outbox, and closes its connections in any case.
pub(crate) async fn on<T>(
    target: &Target,
    work: impl AsyncFnOnce(&dyn Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let store = existing(target).await?;
    let worked = work(&*store).await.map_err(|failure| failure.on(target));
    store.close().await;
    worked
}

/// As [`existing`], but the tables are not checked.
pub(crate) async fn at(target: &Target) -> Result<Arc<dyn Store>, Failure> {
    let (address, table) = (Address::parse(&target.store)?, table(target)?);
    if let Address::Sqlite(location) = &address {
        refuse_missing_file(location, target)?;
    }
    open(&address, &table).await
}

/// The name of the event table.
pub(crate) fn table(target: &Target) -> Result<TableName, Failure> {
    Ok(TableName::parse(&target.table).map_err(|error| about_option("--table", &error))?)
}

/// Refuses a SQLite file that does not exist. Opening would create it, and a typing error should not leave an empty
/// database behind.
fn refuse_missing_file(location: &str, target: &Target) -> Result<(), Failure> {
    let file = match SqliteConnectOptions::from_str(location) {
        Ok(options) if location.starts_with("sqlite:") => options.get_filename().to_owned(),
        _ => location.into(),
    };
    if file.try_exists().unwrap_or(true) {
        return Ok(());
    }
    Err(Failure::NoFile { file: file.display().to_string(), migrate: target.command(&["migrate"]) })
}

/// The store at `address`, with its event table called `table`.
pub(crate) async fn open(address: &Address, table: &TableName) -> Result<Arc<dyn Store>, Failure> {
    Ok(match address {
        Address::Sqlite(file) => Arc::new(sqlite(file, table).await?),
        Address::Postgres(url) => Arc::new(postgres(url, table).await?),
        Address::Mysql(url) => Arc::new(mysql(url, table).await?),
    })
}

/// The SQL that `migrate` would run on an empty database of that kind; no connection is made for it.
pub(crate) fn migration_sql(address: &Address, table: &TableName) -> Result<String, Failure> {
    let table = table.to_string();
    Ok(match address {
        Address::Sqlite(file) => SqliteOptions::new(file).table(table).migration_sql()?,
        Address::Postgres(url) => PostgresOptions::parse(url)?.table(table).migration_sql()?,
        Address::Mysql(url) => MysqlOptions::parse(url)?.table(table).migration_sql()?,
    })
}

/// The living nodes of an earlier release, which do not hear of what operators change; `None` if there is none, or nobody can tell.
pub(crate) async fn nodes_of_earlier_releases(store: &dyn Store) -> Option<String> {
    let nodes = store.nodes().await.unwrap_or_default();
    let earlier = nodes.iter().filter(|node| node.is_of_an_earlier_release()).map(|node| node.node.to_string());
    Some(earlier.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
}
