//! The PostgreSQL store against its port, in a schema of its own for each test.

use std::process::ExitCode;
use std::sync::Arc;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Stamp;
use pillarbox_core::store::Store;
use pillarbox_postgres::{PostgresOptions, PostgresStore};
use pillarbox_sqlx::Sqlx;
use pillarbox_testkit::{Capabilities, Harness, Held, conformance};
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions, PgRow, PgTransaction};
use sqlx::{AssertSqlSafe, Row as _};

fn main() -> ExitCode {
    conformance::run::<PostgresHarness>()
}

struct PostgresHarness {
    url: String,
    schema: String,
    store: PostgresStore,
    pool: PgPool,
}

async fn connect(url: &str, schema: &str) -> Result<PostgresStore, BoxError> {
    Ok(PostgresOptions::parse(url)?.table(format!("{schema}.shop_event")).connect().await?)
}

impl Harness for PostgresHarness {
    type Marker = Sqlx;
    type Transaction = PgTransaction<'static>;
    type Source<'a> = &'a PgPool;

    const CAPABILITIES: Capabilities =
        Capabilities { sql: true, concurrent_writers: true, wake_ups: true, row_locks: true, tells_writers: true };

    async fn create() -> Result<Self, BoxError> {
        let url = std::env::var("PILLARBOX_TEST_POSTGRES_URL")
            .unwrap_or_else(|_| "postgres://postgres@127.0.0.1:5432/postgres".to_owned());
        let unreachable = |error| format!("start PostgreSQL, or run scripts/test, which brings one: {error}");
        let pool = PgPoolOptions::new().max_connections(10).connect(&url).await.map_err(unreachable)?;
        let schema = format!("pillarbox_{}", Stamp::system().next_id()).to_lowercase();
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE SCHEMA {schema}"))).execute(&pool).await?;
        let store = connect(&url, &schema).await?;
        Ok(Self { url, schema, store, pool })
    }

    async fn destroy(self) -> Result<(), BoxError> {
        // A session whose client is gone may still be at work on the tables, and take them in another order.
        let drop = format!("DROP SCHEMA {} CASCADE", self.schema);
        while let Err(error) = self.execute(&drop).await {
            if !error.to_string().contains("deadlock detected") {
                return Err(error);
            }
        }
        self.pool.close().await;
        Ok(())
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn connect(&self) -> Result<Arc<dyn Store>, BoxError> {
        Ok(Arc::new(connect(&self.url, &self.schema).await?))
    }

    fn source(&self) -> &PgPool {
        &self.pool
    }

    async fn execute(&self, sql: &str) -> Result<(), BoxError> {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&self.pool).await?;
        Ok(())
    }

    async fn query(&self, sql: &str) -> Result<Option<Vec<Option<String>>>, BoxError> {
        let row = sqlx::query(AssertSqlSafe(sql.to_owned())).persistent(false).fetch_optional(&self.pool).await?;
        let texts = |row: PgRow| (0..row.len()).map(|index| row.try_get(index)).collect();
        Ok(row.map(texts).transpose()?)
    }

    async fn execute_in(transaction: &mut PgConnection, sql: &str) -> Result<(), BoxError> {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(transaction).await?;
        Ok(())
    }

    async fn hold(&self, sql: &str) -> Result<Held, BoxError> {
        let (pool, sql) = (self.pool.clone(), sql.to_owned());
        let begin = async move {
            let mut transaction = pool.begin().await?;
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *transaction).await?;
            Ok(async move { Ok(transaction.commit().await?) })
        };
        Held::begin(begin).await
    }

    async fn waiting(&self) -> Result<usize, BoxError> {
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND position($1 in query) > 0";
        let count: i64 = sqlx::query_scalar(waiting).bind(&self.schema).fetch_one(&self.pool).await?;
        Ok(usize::try_from(count)?)
    }

    fn sql_time(seconds: i64) -> String {
        format!("now() + interval '{seconds} seconds'")
    }

    fn sql_hex(column: &str) -> String {
        format!("encode({column}, 'hex')")
    }

    fn sql_json(bytes: usize) -> String {
        format!("to_json(repeat('x', {}))", bytes - 2)
    }
}
