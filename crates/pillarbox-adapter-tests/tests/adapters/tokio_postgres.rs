//! tokio-postgres and deadpool-postgres.

use std::time::Duration;

use deadpool_postgres::{Client, Manager, Pool};
use pillarbox_core::error::BoxError;
use pillarbox_core::event::Envelope;
use pillarbox_engine::run::Outbox;
use pillarbox_postgres::PostgresStore;
use pillarbox_testkit::Recorder;
use pillarbox_testkit::adapters::{Driver, InnerOf, Outcome};
use pillarbox_tokio_postgres::TokioPostgres;
use tokio::time::sleep;
use tokio_postgres::NoTls;

use crate::place::{self, Postgres};

/// A pool of one connection.
struct Pooled {
    place: Postgres,
    held: Pool,
}

impl Driver for Pooled {
    type Marker = TokioPostgres;
    type Source<'a> = &'a Pool;
    type Store = PostgresStore;

    async fn create() -> Result<Self, BoxError> {
        let place = Postgres::create().await?;
        let held = pool()?;
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self.held);
        self.place.destroy().await
    }

    fn store(&self) -> PostgresStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &Pool {
        &self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        Ok(inner.batch_execute(sql).await?)
    }
}

/// A connection of a pool.
struct Lent {
    place: Postgres,
    held: Client,
}

impl Driver for Lent {
    type Marker = TokioPostgres;
    type Source<'a> = &'a mut Client;
    type Store = PostgresStore;

    async fn create() -> Result<Self, BoxError> {
        let place = Postgres::create().await?;
        let held = pool()?.get().await?;
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self.held);
        self.place.destroy().await
    }

    fn store(&self) -> PostgresStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &mut Client {
        &mut self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        Ok(inner.batch_execute(sql).await?)
    }
}

/// The driver's own connection.
struct Bare {
    place: Postgres,
    held: Client,
}

impl Driver for Bare {
    type Marker = TokioPostgres;
    type Source<'a> = &'a mut tokio_postgres::Client;
    type Store = PostgresStore;

    async fn create() -> Result<Self, BoxError> {
        let place = Postgres::create().await?;
        let held = pool()?.get().await?;
        Ok(Self { place, held })
    }

    async fn destroy(self) -> Outcome {
        drop(self.held);
        self.place.destroy().await
    }

    fn store(&self) -> PostgresStore {
        self.place.store.clone()
    }

    fn source(&mut self) -> &mut tokio_postgres::Client {
        &mut self.held
    }

    async fn execute(inner: &mut InnerOf<'_, Self>, sql: &str) -> Result<(), BoxError> {
        Ok(inner.batch_execute(sql).await?)
    }
}

fn pool() -> Result<Pool, BoxError> {
    Ok(Pool::builder(Manager::new(place::postgres_url().parse()?, NoTls)).max_size(1).build()?)
}

mod pool {
    pillarbox_testkit::adapter_tests!(super::Pooled);
}

mod lent {
    pillarbox_testkit::adapter_tests!(super::Lent);
}

mod bare {
    pillarbox_testkit::adapter_tests!(super::Bare);
}

/// The drivers do not tell a nested transaction, whose commit only releases a savepoint: its event is delivered once the outermost one has committed.
macro_rules! nested {
    ($test:ident, $driver:ty) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn $test() -> Outcome {
            let mut driver = <$driver>::create().await?;
            let recorder = Recorder::new();
            let outbox = Outbox::single_node(driver.store()).handle_all(recorder.clone()).start().await?;
            let event = || Envelope::json("order.placed", "{}");
            for commits in [false, true] {
                let mut outer = driver.source().transaction().await?;
                let mut nested = outer.transaction().await?;
                let receipt = outbox.write(&mut nested, event()?).await?;
                outbox.commit(nested, receipt).await?;
                sleep(Duration::from_millis(300)).await;
                assert_eq!(recorder.calls().len(), 0, "nothing is committed");
                if commits { outer.commit().await? } else { outer.rollback().await? }
            }
            recorder.wait_for_ends(1).await;

            // In a guard, which has the receipt too.
            for commits in [false, true] {
                let mut guard = outbox.begin(driver.source()).await?;
                let mut nested = guard.transaction().await?;
                let receipt = outbox.write(&mut nested, event()?).await?;
                outbox.commit(nested, receipt.clone()).await?;
                outbox.notify_committed(receipt);
                sleep(Duration::from_millis(300)).await;
                assert_eq!(recorder.calls().len(), 1, "nothing else is committed");
                if commits { guard.commit().await? } else { guard.rollback().await? }
            }
            recorder.wait_for_ends(2).await;
            outbox.shutdown().await;
            assert_eq!(recorder.calls().len(), 2);
            driver.destroy().await
        }
    };
}

nested!(an_event_of_a_nested_transaction_of_deadpool_waits_for_the_outermost, Lent);
nested!(an_event_of_a_nested_transaction_waits_for_the_outermost, Bare);
