//! Fresh tables, one set for each test.

use std::sync::Arc;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Stamp;
use pillarbox_core::store::Store as _;
use pillarbox_mysql::{MysqlOptions, MysqlStore};
use pillarbox_postgres::{PostgresOptions, PostgresStore};
use pillarbox_sqlite::SqliteStore;
use tempfile::TempDir;

/// A server that tests are told of.
fn server(variable: &str, default: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| default.to_owned())
}

pub(crate) fn postgres_url() -> String {
    server("PILLARBOX_TEST_POSTGRES_URL", "postgres://postgres@127.0.0.1:5432/postgres")
}

pub(crate) fn mysql_url() -> String {
    server("PILLARBOX_TEST_MYSQL_URL", "mysql://root@127.0.0.1:3306/test")
}

/// A name that no other test and no earlier run has used.
fn unique() -> String {
    format!("pillarbox_{}", Stamp::system().next_id()).to_ascii_lowercase()
}

/// A schema with the tables of a store.
#[derive(Debug)]
pub(crate) struct Postgres {
    schema: String,
    pub(crate) store: PostgresStore,
}

impl Postgres {
    pub(crate) async fn create() -> Result<Self, BoxError> {
        let schema = unique();
        execute(&format!("CREATE SCHEMA {schema}")).await?;
        let store = PostgresOptions::parse(&postgres_url())?.table(format!("{schema}.event")).connect().await?;
        store.migrate().await?;
        Ok(Self { schema, store })
    }

    pub(crate) async fn destroy(self) -> Result<(), BoxError> {
        // A session whose client is gone may still be at work on the tables, and take them in another order.
        let drop = format!("DROP SCHEMA {} CASCADE", self.schema);
        while let Err(error) = execute(&drop).await {
            let is_deadlock = error.downcast_ref::<tokio_postgres::Error>().and_then(tokio_postgres::Error::code)
                == Some(&tokio_postgres::error::SqlState::T_R_DEADLOCK_DETECTED);
            if !is_deadlock {
                return Err(error);
            }
        }
        Ok(())
    }
}

async fn execute(sql: &str) -> Result<(), BoxError> {
    let connected = tokio_postgres::connect(&postgres_url(), tokio_postgres::NoTls).await;
    let (client, connection) = connected.map_err(|error| {
        format!("these tests need PostgreSQL and cannot reach it ({error}); run them by ./scripts/test")
    })?;
    let (done, _closed) = tokio::join!(
        async {
            let done = client.batch_execute(sql).await;
            drop(client);
            done
        },
        connection
    );
    Ok(done?)
}

/// A database with the tables of a store.
#[derive(Debug)]
pub(crate) struct Mysql {
    database: String,
    pub(crate) store: MysqlStore,
}

impl Mysql {
    pub(crate) async fn create() -> Result<Self, BoxError> {
        let database = unique();
        execute_mysql(&format!("CREATE DATABASE {database}")).await?;
        let store = MysqlOptions::parse(&mysql_url())?.table(format!("{database}.event")).connect().await?;
        store.migrate().await?;
        Ok(Self { database, store })
    }

    pub(crate) async fn destroy(self) -> Result<(), BoxError> {
        execute_mysql(&format!("DROP DATABASE {}", self.database)).await
    }
}

async fn execute_mysql(sql: &str) -> Result<(), BoxError> {
    use mysql_async::prelude::Queryable as _;

    let connected = mysql_async::Conn::from_url(mysql_url()).await;
    let mut connection = connected.map_err(|error| {
        format!("these tests need MariaDB and cannot reach it ({error}); run them by ./scripts/test")
    })?;
    connection.query_drop(sql).await?;
    Ok(connection.disconnect().await?)
}

/// A file with the tables of a store.
#[derive(Debug, Clone)]
pub(crate) struct Sqlite {
    folder: Arc<TempDir>,
    pub(crate) store: SqliteStore,
}

impl Sqlite {
    pub(crate) async fn create() -> Result<Self, BoxError> {
        let folder = Arc::new(TempDir::new()?);
        let store = SqliteStore::open(&Self::file(&folder)).await?;
        store.migrate().await?;
        Ok(Self { folder, store })
    }

    fn file(folder: &TempDir) -> String {
        folder.path().join("events.db").display().to_string()
    }

    /// As for the other places, whose tables have to be dropped. The folder goes with the last that holds it.
    #[expect(clippy::unused_async, reason = "the same call for every place")]
    pub(crate) async fn destroy(self) -> Result<(), BoxError> {
        drop(self);
        Ok(())
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> String {
        Self::file(&self.folder)
    }
}
