//! tokio-postgres and deadpool-postgres.

use deadpool_postgres::{Client, Manager, Pool};
use pillarbox_core::error::BoxError;
use pillarbox_postgres::PostgresStore;
use pillarbox_testkit::adapters::{Driver, InnerOf, Outcome};
use pillarbox_tokio_postgres::TokioPostgres;
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
