//! A schema of its own for each test.

use std::str::FromStr as _;

use pillarbox::backend::clock::SystemClock;
use pillarbox::{PostgresOptions, PostgresStore};
use pillarbox_testkit::{TestOutbox, unique_name};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, PgPool};

pub(crate) use tested_orders::BoxError;

/// The outbox of a test.
pub(crate) type Test = TestOutbox<PostgresStore, SystemClock>;

/// The service's tables and the outbox's, in one schema.
pub(crate) struct Database {
    pub(crate) pool: PgPool,
    pub(crate) store: PostgresStore,
}

impl Database {
    /// The number of rows of a table.
    pub(crate) async fn count(&self, table: &str) -> Result<i64, BoxError> {
        Ok(sqlx::query_scalar(AssertSqlSafe(format!("select count(*) from {table}"))).fetch_one(&self.pool).await?)
    }

    async fn create(url: &str, schema: &str) -> Result<Self, BoxError> {
        let options = PgConnectOptions::from_str(url)?.options([("search_path", schema)]);
        let pool = PgPoolOptions::new().max_connections(16).connect_with(options).await?;
        pool.execute(include_str!("../../schema.sql")).await?;
        let store = PostgresOptions::parse(url)?.table(format!("{schema}.outbox_event")).connect().await?;
        Ok(Self { pool, store })
    }
}

/// Runs a test in a schema of its own, which is dropped if the test passes, and left to be looked at if it fails.
pub(crate) async fn with_database(test: impl AsyncFnOnce(&Database) -> Result<(), BoxError>) {
    let url = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
        .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
    let schema = unique_name("tested_orders");
    let mut server = PgConnection::connect(&url).await.unwrap_or_else(|error| {
        panic!("this test needs PostgreSQL and cannot reach it ({error}); run it by ./scripts/test")
    });
    server.execute(AssertSqlSafe(format!("create schema {schema}"))).await.expect("the schema");
    let database = Database::create(&url, &schema).await.expect("the tables");
    test(&database).await.expect("the test passes");
    server.execute(AssertSqlSafe(format!("drop schema {schema} cascade"))).await.expect("it is dropped");
}
