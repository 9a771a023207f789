//! sqlx.

use std::time::Duration;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_core::store::{Admin as _, Store as _};
use pillarbox_core::write::WriteError;
use pillarbox_engine::run::Outbox;
use pillarbox_mysql::MysqlStore;
use pillarbox_postgres::PostgresStore;
use pillarbox_sqlite::SqliteStore;
use pillarbox_sqlx::Sqlx;
use pillarbox_testkit::Recorder;
use pillarbox_testkit::adapters::{Driver, InnerOf, Outcome};
use sqlx::mysql::MySqlPoolOptions;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlPool, PgPool, SqlitePool};
use tokio::time::sleep;

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

/// A nested transaction only releases a savepoint: the event is delivered once the outermost one has committed. Where it `is_refused`, what that has
/// rolled back is written again.
macro_rules! nested {
    ($driver:ty, $is_refused:literal) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn an_event_of_a_nested_transaction_waits_for_the_outermost() -> Outcome {
            let driver = <$driver>::create().await?;
            let recorder = Recorder::new();
            let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
            let event = || Envelope::json("order.placed", "{}");
            for commits in [false, true] {
                let mut outer = driver.held.begin().await?;
                let mut nested = outer.begin().await?;
                let receipt = outbox.write(&mut nested, event()?).await?;
                let committed = outbox.commit(nested, receipt).await;
                assert_eq!(committed.is_err(), $is_refused, "{committed:?}");
                if let Err(error) = committed {
                    assert!(error.to_string().contains("nested in another one"), "{error}");
                    let mut nested = outer.begin().await?;
                    outbox.write(&mut nested, event()?).await?;
                    nested.commit().await?;
                }
                sleep(Duration::from_millis(300)).await;
                assert_eq!(recorder.calls().len(), 0, "nothing is committed");
                if commits {
                    outer.commit().await?;
                    recorder.wait_for_ends(1).await;
                } else {
                    outer.rollback().await?;
                }
            }
            outbox.shutdown().await;
            assert_eq!(recorder.calls().len(), 1);
            driver.destroy().await
        }
    };
}

mod postgres {
    use super::*;

    pillarbox_testkit::adapter_tests!(PostgresPool);
    nested!(PostgresPool, true);
}

mod mysql {
    use super::*;

    pillarbox_testkit::adapter_tests!(MysqlPool);
    nested!(MysqlPool, true);
}

mod sqlite {
    use super::*;

    pillarbox_testkit::adapter_tests!(SqliteWriter);
    nested!(SqliteWriter, false);
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

/// sqlx counts a transaction for ever that SQLite itself has ended. The connection is replaced, whether the guard is dropped or its commit fails.
#[tokio::test(flavor = "multi_thread")]
async fn sqlite_begins_again_after_sqlite_has_ended_a_transaction() -> Outcome {
    let driver = SqliteWriter::create().await?;
    let own = SqlitePoolOptions::new().max_connections(1).connect(&format!("sqlite://{}", driver.place.path())).await?;
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    own.execute("CREATE TABLE once (id INTEGER PRIMARY KEY); INSERT INTO once VALUES (1)").await?;
    for commits in [false, true] {
        let mut tx = outbox.begin(&own).await?;
        let conflict = tx.execute("INSERT OR ROLLBACK INTO once VALUES (1)").await;
        assert!(conflict.is_err(), "it is there");
        if commits {
            assert!(tx.commit().await.is_err(), "there is nothing to commit");
        } else {
            drop(tx);
        }
        let mut tx = outbox.begin(&own).await?;
        outbox.write(&mut tx, Envelope::json("order.placed", "{}")?).await?;
        tx.commit().await?;
    }
    assert_eq!(driver.store().counts().await?.new, 2);
    outbox.shutdown().await;
    driver.destroy().await
}

/// A trigger drops one of three rows: their numbers would be taken for those of others.
#[tokio::test(flavor = "multi_thread")]
async fn postgresql_does_not_mistake_rows_where_a_trigger_drops_some() -> Outcome {
    let driver = PostgresPool::create().await?;
    let outbox = Outbox::writer_only(driver.store()).start().await?;
    let table = driver.store().info().table.clone();
    let drops = format!(
        "CREATE FUNCTION {table}_drops() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN IF NEW.event_type = 'unwanted' THEN RETURN NULL; END IF; RETURN NEW; END $$; \
         CREATE TRIGGER drops BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {table}_drops()"
    );
    driver.held.execute(AssertSqlSafe(drops)).await?;
    let event = |of: &str| Envelope::json(of, "{}");
    let mut tx = outbox.begin(&driver.held).await?;
    let events = [event("order.placed")?, event("unwanted")?, event("order.placed")?];
    let Err(error) = outbox.write_all(&mut tx, events).await else { return Err("a row is missing".into()) };
    assert!(matches!(error, WriteError::WrongCount { rows: 3, inserted: 2 }), "{error}");
    assert!(error.to_string().contains("trigger"), "{error}");
    tx.rollback().await?;
    outbox.shutdown().await;
    driver.destroy().await
}
