//! sqlx.

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::store::Upkeep as _;
use pillarbox_engine::run::Outbox;
use pillarbox_mysql::MysqlStore;
use pillarbox_postgres::PostgresStore;
use pillarbox_sqlite::SqliteStore;
use pillarbox_sqlx::Sqlx;
use pillarbox_testkit::adapters::{Driver, InnerOf, Outcome};
use sqlx::mysql::MySqlPoolOptions;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor as _, MySqlPool, PgPool, SqlitePool};

use crate::place::{self, Mysql, Postgres, Sqlite};

/// A pool of one connection.
struct PostgresPool {
    place: Postgres,
    held: PgPool,
}

impl Driver for PostgresPool {
    type Marker = Sqlx;
    type Source<'a> = &'a PgPool;
    type Store = PostgresStore;

    async fn create() -> Result<Self, BoxError> {
        let place = Postgres::create().await?;
        let held = PgPoolOptions::new().max_connections(1).connect(&place::postgres_url()).await?;
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self.held);
        self.place.destroy().await
    }

    fn store(&self) -> PostgresStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &PgPool {
        &self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        inner.execute(AssertSqlSafe(sql.to_owned())).await?;
        Ok(())
    }
}

/// A pool of one connection.
struct MysqlPool {
    place: Mysql,
    held: MySqlPool,
}

impl Driver for MysqlPool {
    type Marker = Sqlx;
    type Source<'a> = &'a MySqlPool;
    type Store = MysqlStore;

    const A_DROPPED_PREPARE_IS_HARMLESS: bool = false;

    async fn create() -> Result<Self, BoxError> {
        let place = Mysql::create().await?;
        let held = MySqlPoolOptions::new().max_connections(1).connect(&place::mysql_url()).await?;
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self.held);
        self.place.destroy().await
    }

    fn store(&self) -> MysqlStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &MySqlPool {
        &self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        inner.execute(AssertSqlSafe(sql.to_owned())).await?;
        Ok(())
    }
}

/// The store's own pool of one connection.
struct SqliteWriter {
    place: Sqlite,
    held: SqlitePool,
}

impl Driver for SqliteWriter {
    type Marker = Sqlx;
    type Source<'a> = &'a SqlitePool;
    type Store = SqliteStore;

    async fn create() -> Result<Self, BoxError> {
        let place = Sqlite::create().await?;
        let held = place.store.writer().clone();
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self);
        Ok(())
    }

    fn store(&self) -> SqliteStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &SqlitePool {
        &self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        inner.execute(AssertSqlSafe(sql.to_owned())).await?;
        Ok(())
    }
}

mod postgres {
    pillarbox_testkit::adapter_tests!(super::PostgresPool);
}

mod mysql {
    pillarbox_testkit::adapter_tests!(super::MysqlPool);
}

mod sqlite {
    pillarbox_testkit::adapter_tests!(super::SqliteWriter);
}

/// A nested transaction that fails to begin makes sqlx roll back the one around it.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_says_so_where_sqlx_has_no_transaction_to_commit() -> Outcome {
    let driver = SqliteWriter::create().await?;
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let mut tx = outbox.begin(&driver.held).await?;
    assert!(sqlx::Connection::begin_with(&mut *tx, "BEGIN IMMEDIATE").await.is_err(), "it is no savepoint");
    let error = tx.commit().await.expect_err("nothing was committed");
    assert!(error.to_string().contains("not open any more"), "{error}");
    outbox.shutdown().await;
    driver.destroy().await
}

/// A nested transaction whose beginning is given up makes sqlx queue a rollback, which can be that of the transaction around it: an event that is
/// written afterwards is there if the commit succeeds, and is not there if anything has failed.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_writes_nothing_behind_a_queued_rollback() -> Outcome {
    let driver = SqliteWriter::create().await?;
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let (mut committed, mut failed) = (0, 0);
    for polls in 0..40_usize {
        let mut tx = outbox.begin(&driver.held).await?;
        {
            let nested = sqlx::Connection::begin(&mut *tx);
            drop(pillarbox_testkit::drop_after(polls % 4, nested).await);
        }
        let event = Envelope::json("order.placed", "{}")?;
        let written = outbox.write(&mut tx, event).await.is_ok();
        match tx.commit().await {
            Ok(()) if written => committed += 1,
            _ => failed += 1,
        }
        assert_eq!(driver.store().counts().await?.new, committed, "{failed} have failed");
    }
    outbox.shutdown().await;
    driver.destroy().await
}
