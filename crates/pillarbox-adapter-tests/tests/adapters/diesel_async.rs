//! diesel-async.

use diesel_async::pooled_connection::AsyncDieselConnectionManager;
use diesel_async::pooled_connection::deadpool::Pool;
use diesel_async::{AsyncMysqlConnection, AsyncPgConnection, SimpleAsyncConnection as _};
use pillarbox_core::error::BoxError;
use pillarbox_diesel::Diesel;
use pillarbox_mysql::MysqlStore;
use pillarbox_postgres::PostgresStore;
use pillarbox_testkit::adapters::{Driver, InnerOf, Outcome};

use crate::place::{self, Mysql, Postgres};

/// A pool of one connection.
struct PostgresPool {
    place: Postgres,
    held: Pool<AsyncPgConnection>,
}

impl Driver for PostgresPool {
    type Marker = Diesel;
    type Source<'a> = &'a Pool<AsyncPgConnection>;
    type Store = PostgresStore;

    async fn create() -> Result<Self, BoxError> {
        let place = Postgres::create().await?;
        let held = Pool::builder(AsyncDieselConnectionManager::new(place::postgres_url())).max_size(1).build()?;
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self.held);
        self.place.destroy().await
    }

    fn store(&self) -> PostgresStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &Pool<AsyncPgConnection> {
        &self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        Ok(inner.batch_execute(sql).await?)
    }
}

/// A pool of one connection.
struct MysqlPool {
    place: Mysql,
    held: Pool<AsyncMysqlConnection>,
}

impl Driver for MysqlPool {
    type Marker = Diesel;
    type Source<'a> = &'a Pool<AsyncMysqlConnection>;
    type Store = MysqlStore;

    async fn create() -> Result<Self, BoxError> {
        let place = Mysql::create().await?;
        let held = Pool::builder(AsyncDieselConnectionManager::new(place::mysql_url())).max_size(1).build()?;
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self.held);
        self.place.destroy().await
    }

    fn store(&self) -> MysqlStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &Pool<AsyncMysqlConnection> {
        &self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        Ok(inner.batch_execute(sql).await?)
    }
}

mod postgres {
    pillarbox_testkit::adapter_tests!(super::PostgresPool);
}

mod mysql {
    pillarbox_testkit::adapter_tests!(super::MysqlPool);
}

mod own {
    use diesel::result::Error::AlreadyInTransaction;
    use diesel_async::AsyncConnection as _;
    use pillarbox_core::event::Envelope;
    use pillarbox_core::write::WriteError;
    use pillarbox_engine::run::Outbox;
    use pillarbox_testkit::Recorder;

    use super::*;

    fn event() -> Result<Envelope, BoxError> {
        Ok(Envelope::json("order.placed", "{}")?)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn its_own_transaction_writes_and_a_plain_connection_is_refused() -> Outcome {
        let driver = PostgresPool::create().await?;
        let recorder = Recorder::new();
        let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
        let mut conn = driver.held.get().await?;
        let refused = outbox.write(&mut conn, event()?).await;
        assert!(matches!(refused, Err(WriteError::NoTransaction)), "{refused:?}");
        let receipt = conn.transaction(async |conn| Ok::<_, BoxError>(outbox.write(conn, event()?).await?)).await?;
        outbox.notify_committed(receipt);
        recorder.wait_for_ends(1).await;
        drop(conn);
        outbox.shutdown().await;
        driver.destroy().await
    }

    /// A guard that is dropped leaves its connection to the next one.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_borrowed_connection_is_of_use_after_a_dropped_guard() -> Outcome {
        let driver = PostgresPool::create().await?;
        let outbox = Outbox::writer_only(driver.store()).start().await?;
        let mut conn = AsyncPgConnection::establish(&place::postgres_url()).await?;
        for _ in 0..2 {
            let mut tx = outbox.begin(&mut conn).await?;
            outbox.write(&mut tx, event()?).await?;
            drop(tx);
        }
        let mut tx = outbox.begin(&mut conn).await?;
        outbox.write(&mut tx, event()?).await?;
        tx.commit().await?;
        assert_eq!(pillarbox_core::store::Admin::counts(&driver.store()).await?.new, 1);
        outbox.shutdown().await;
        driver.destroy().await
    }

    /// In diesel-async's own transaction, and in a guard's.
    macro_rules! refused_begin {
        ($test:ident, $driver:ty) => {
            #[tokio::test(flavor = "multi_thread")]
            async fn $test() -> Outcome {
                let driver = <$driver>::create().await?;
                let outbox = Outbox::writer_only(driver.store()).start().await?;
                let mut conn = driver.held.get().await?;
                let own = conn.transaction(async |conn| {
                    outbox.write(conn, event()?).await?;
                    let refused = outbox.begin(&mut **conn).await;
                    assert!(matches!(refused, Err(AlreadyInTransaction)), "{refused:?}");
                    drop(refused);
                    Ok::<_, BoxError>(outbox.write(conn, event()?).await?)
                });
                own.await?;
                assert_eq!(pillarbox_core::store::Admin::counts(&driver.store()).await?.new, 2);

                let mut guard = outbox.begin(&mut *conn).await?;
                outbox.write(&mut guard, event()?).await?;
                let refused = outbox.begin(&mut *guard).await;
                assert!(matches!(refused, Err(AlreadyInTransaction)), "{refused:?}");
                drop(refused);
                outbox.write(&mut guard, event()?).await?;
                guard.commit().await?;
                assert_eq!(pillarbox_core::store::Admin::counts(&driver.store()).await?.new, 4);
                drop(conn);
                outbox.shutdown().await;
                driver.destroy().await
            }
        };
    }

    refused_begin!(a_refused_begin_leaves_the_transaction_of_postgresql_as_it_was, PostgresPool);
    refused_begin!(a_refused_begin_leaves_the_transaction_of_mysql_as_it_was, MysqlPool);
}
