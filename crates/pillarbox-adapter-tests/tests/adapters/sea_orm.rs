//! SeaORM.

use pillarbox_core::error::BoxError;
use pillarbox_mysql::MysqlStore;
use pillarbox_postgres::PostgresStore;
use pillarbox_sea_orm::SeaOrm;
use pillarbox_sqlite::SqliteStore;
use pillarbox_testkit::adapters::{Driver, InnerOf, Outcome};
use sea_orm::{ConnectOptions, ConnectionTrait as _, Database, DatabaseConnection};

use crate::place::{self, Mysql, Postgres, Sqlite};

/// A pool of one connection.
struct PostgresPool {
    place: Postgres,
    held: DatabaseConnection,
}

impl Driver for PostgresPool {
    type Marker = SeaOrm;
    type Source<'a> = &'a DatabaseConnection;
    type Store = PostgresStore;

    async fn create() -> Result<Self, BoxError> {
        let place = Postgres::create().await?;
        let held = connect(place::postgres_url()).await?;
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self.held);
        self.place.destroy().await
    }

    fn store(&self) -> PostgresStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &DatabaseConnection {
        &self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        inner.execute_unprepared(sql).await?;
        Ok(())
    }
}

/// A pool of one connection.
struct MysqlPool {
    place: Mysql,
    held: DatabaseConnection,
}

impl Driver for MysqlPool {
    type Marker = SeaOrm;
    type Source<'a> = &'a DatabaseConnection;
    type Store = MysqlStore;

    const A_DROPPED_PREPARE_IS_HARMLESS: bool = false;

    async fn create() -> Result<Self, BoxError> {
        let place = Mysql::create().await?;
        let held = connect(place::mysql_url()).await?;
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self.held);
        self.place.destroy().await
    }

    fn store(&self) -> MysqlStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &DatabaseConnection {
        &self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        inner.execute_unprepared(sql).await?;
        Ok(())
    }
}

/// A pool of one connection.
struct SqlitePool {
    place: Sqlite,
    held: DatabaseConnection,
}

impl Driver for SqlitePool {
    type Marker = SeaOrm;
    type Source<'a> = &'a DatabaseConnection;
    type Store = SqliteStore;

    async fn create() -> Result<Self, BoxError> {
        let place = Sqlite::create().await?;
        let held = connect(format!("sqlite://{}", place.path())).await?;
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self);
        Ok(())
    }

    fn store(&self) -> SqliteStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &DatabaseConnection {
        &self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        inner.execute_unprepared(sql).await?;
        Ok(())
    }
}

async fn connect(url: String) -> Result<DatabaseConnection, BoxError> {
    Ok(Database::connect(ConnectOptions::new(url).max_connections(1).to_owned()).await?)
}

mod postgres {
    pillarbox_testkit::adapter_tests!(super::PostgresPool);
}

mod mysql {
    pillarbox_testkit::adapter_tests!(super::MysqlPool);
}

mod sqlite {
    pillarbox_testkit::adapter_tests!(super::SqlitePool);
}

mod own {
    use std::time::Duration;

    use pillarbox_core::event::Envelope;
    use pillarbox_core::write::Finish;
    use pillarbox_engine::run::Outbox;
    use pillarbox_testkit::Recorder;
    use sea_orm::TransactionTrait as _;
    use tokio::time::sleep;

    use super::*;

    fn event() -> Result<Envelope, BoxError> {
        Ok(Envelope::json("order.placed", "{}")?)
    }

    /// Through a reference in the closure of SeaORM's own, and in nested transactions, of which one is rolled back.
    #[tokio::test(flavor = "multi_thread")]
    async fn its_own_transactions_write() -> Outcome {
        let driver = PostgresPool::create().await?;
        let recorder = Recorder::new();
        let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
        let (writer, noted) = (outbox.clone(), event()?);
        let first = noted.clone();
        let receipt = driver
            .held
            .transaction::<_, _, sea_orm::DbErr>(move |tx| {
                Box::pin(async move {
                    let written = writer.write(&mut &*tx, first).await;
                    written.map_err(|error| sea_orm::DbErr::Custom(error.to_string()))
                })
            })
            .await?;
        outbox.notify_committed(receipt);

        let kept = event()?;
        let tx = outbox.begin(&driver.held).await?;
        let mut nested = tx.begin().await?;
        outbox.write(&mut nested, kept.clone()).await?;
        nested.commit().await?;
        let mut nested = tx.begin().await?;
        outbox.write(&mut nested, event()?).await?;
        nested.rollback().await?;
        tx.commit().await?;
        recorder.wait_for_ends(2).await;
        outbox.shutdown().await;
        let mut calls = recorder.calls();
        calls.sort_by_key(|call| call.seq);
        assert!(calls.iter().map(|call| &call.id).eq([noted.id(), kept.id()]), "{calls:?}");
        driver.destroy().await
    }

    /// It is kept beside the guard, so that the guard does not see its rollback.
    #[tokio::test(flavor = "multi_thread")]
    async fn events_that_a_nested_transaction_rolls_back_are_not_delivered() -> Outcome {
        let driver = PostgresPool::create().await?;
        let recorder = Recorder::new();
        let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
        let kept = event()?;
        for _ in 0..5 {
            let mut tx = outbox.begin(&driver.held).await?;
            let nested = tx.begin().await?;
            outbox.write(&mut tx, event()?).await?;
            nested.rollback().await?;
            tx.commit().await?;
        }
        let mut tx = outbox.begin(&driver.held).await?;
        outbox.write(&mut tx, kept.clone()).await?;
        tx.commit().await?;
        recorder.wait_for_ends(1).await;
        outbox.shutdown().await;
        assert!(recorder.calls().iter().map(|call| &call.id).eq([kept.id()]), "{:?}", recorder.calls());
        driver.destroy().await
    }

    /// SeaORM ends the innermost transaction that is open, says that it has committed, and rolls back the one around it later. Here it is told, and
    /// events are delivered that `are_committed` all the same. A nested one that was rolled back has left a savepoint, and is not open.
    async fn an_open_nested_transaction_is_noticed<D: Driver>(
        driver: D,
        pool: DatabaseConnection,
        are_committed: bool,
    ) -> Outcome {
        let recorder = Recorder::new();
        let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
        for _ in 0..3 {
            let mut tx = outbox.begin(&pool).await?;
            outbox.write(&mut tx, event()?).await?;
            let nested = tx.begin().await?;
            let Err(error) = tx.commit().await else { return Err("a nested transaction is open".into()) };
            assert!(error.to_string().contains("end nested transactions"), "{error}");
            drop(nested);
        }
        for rolls_back in [false, true] {
            let mut tx = outbox.begin(&pool).await?;
            outbox.write(&mut tx, event()?).await?;
            let nested = tx.begin().await?;
            if rolls_back {
                nested.rollback().await?;
            } else {
                nested.commit().await?;
            }
            tx.commit().await?;
        }
        let delivered = if are_committed { 5 } else { 2 };
        recorder.wait_for_ends(delivered).await;
        outbox.shutdown().await;
        assert_eq!(recorder.calls().len(), delivered);
        driver.destroy().await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_open_nested_transaction_is_noticed_on_postgresql() -> Outcome {
        let driver = PostgresPool::create().await?;
        let pool = driver.held.clone();
        an_open_nested_transaction_is_noticed(driver, pool, true).await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_open_nested_transaction_is_noticed_on_mysql() -> Outcome {
        let driver = MysqlPool::create().await?;
        let pool = driver.held.clone();
        an_open_nested_transaction_is_noticed(driver, pool, true).await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_open_nested_transaction_is_noticed_on_sqlite() -> Outcome {
        let driver = SqlitePool::create().await?;
        let pool = driver.held.clone();
        an_open_nested_transaction_is_noticed(driver, pool, false).await
    }

    /// SeaORM does not tell a nested transaction, whose commit only releases a savepoint: its event, and what the one around it has written, are there
    /// once the outermost one has committed.
    async fn an_event_of_a_nested_transaction_waits_for_the_outermost<D: Driver>(
        driver: D,
        pool: DatabaseConnection,
    ) -> Outcome {
        let recorder = Recorder::new();
        let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
        for commits in [false, true] {
            let mut outer = pool.begin().await?;
            outbox.write(&mut outer, event()?).await?;
            let mut nested = outer.begin().await?;
            let receipt = outbox.write(&mut nested, event()?).await?;
            outbox.commit(nested, receipt).await?;
            sleep(Duration::from_millis(300)).await;
            assert_eq!(recorder.calls().len(), 0, "nothing is committed");
            if commits { outer.commit().await? } else { outer.rollback().await? }
        }
        recorder.wait_for_ends(2).await;
        let mut own = pool.begin().await?;
        let receipt = outbox.write(&mut own, event()?).await?;
        outbox.commit(own, receipt).await?;
        recorder.wait_for_ends(3).await;
        outbox.shutdown().await;
        assert_eq!(recorder.calls().len(), 3);
        driver.destroy().await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_event_of_a_nested_transaction_waits_for_the_outermost_on_postgresql() -> Outcome {
        let driver = PostgresPool::create().await?;
        let pool = driver.held.clone();
        an_event_of_a_nested_transaction_waits_for_the_outermost(driver, pool).await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_event_of_a_nested_transaction_waits_for_the_outermost_on_mysql() -> Outcome {
        let driver = MysqlPool::create().await?;
        let pool = driver.held.clone();
        an_event_of_a_nested_transaction_waits_for_the_outermost(driver, pool).await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_event_of_a_nested_transaction_waits_for_the_outermost_on_sqlite() -> Outcome {
        let driver = SqlitePool::create().await?;
        let pool = driver.held.clone();
        an_event_of_a_nested_transaction_waits_for_the_outermost(driver, pool).await
    }

    /// A statement has failed in it, which PostgreSQL answers by rolling back, or it was ended by hand.
    #[tokio::test(flavor = "multi_thread")]
    async fn its_own_transactions_do_not_seem_to_commit() -> Outcome {
        let (postgres, mysql, sqlite) =
            (PostgresPool::create().await?, MysqlPool::create().await?, SqlitePool::create().await?);
        let failing = "DELETE FROM pillarbox_no_such_table";
        for (pool, end) in [(&postgres.held, failing), (&mysql.held, "ROLLBACK"), (&sqlite.held, "ROLLBACK")] {
            let own = pool.begin().await?;
            assert_eq!(own.execute_unprepared(end).await.is_err(), end == failing);
            assert!(Finish::<SeaOrm>::commit(own).await.is_err(), "there is nothing to commit");
        }
        postgres.destroy().await?;
        mysql.destroy().await?;
        sqlite.destroy().await
    }

    /// sqlx, on which SeaORM runs, counts a transaction for ever that SQLite itself has ended: it takes those that follow for nested ones.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_connection_of_sqlite_is_of_use_after_sqlite_has_ended_a_transaction() -> Outcome {
        let mut driver = SqlitePool::create().await?;
        let recorder = Recorder::new();
        let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
        for written in 1..=3 {
            let mut tx = outbox.begin(driver.source()).await?;
            outbox.write(&mut tx, event()?).await?;
            tx.execute_unprepared("ROLLBACK").await?;
            tx.commit().await.expect_err("nothing is open");
            let mut tx = outbox.begin(driver.source()).await?;
            outbox.write(&mut tx, event()?).await?;
            tx.begin().await?.commit().await?;
            tx.commit().await?;
            recorder.wait_for_ends(written).await;
        }
        outbox.shutdown().await;
        assert_eq!(recorder.calls().len(), 3);
        driver.destroy().await
    }
}
