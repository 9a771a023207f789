//! The MySQL store against its port, in a database of its own for each test.

use std::process::ExitCode;
use std::sync::Arc;

use mysql_async::prelude::Queryable as _;
use mysql_async::{OptsBuilder, Pool, PoolConstraints, PoolOpts, Row, Transaction, TxOpts};
use pillarbox_core::error::BoxError;
use pillarbox_core::event::Stamp;
use pillarbox_core::store::Store;
use pillarbox_mysql::{MysqlOptions, MysqlStore};
use pillarbox_mysql_async::MysqlAsync;
use pillarbox_testkit::{Capabilities, Harness, Held, conformance};

fn main() -> ExitCode {
    conformance::run::<MysqlHarness>()
}

struct MysqlHarness {
    url: String,
    database: String,
    store: MysqlStore,
    pool: Pool,
}

async fn connect(url: &str, database: &str) -> Result<MysqlStore, BoxError> {
    Ok(MysqlOptions::parse(url)?.table(format!("{database}.shop_event")).connect().await?)
}

impl Harness for MysqlHarness {
    type Marker = MysqlAsync;
    type Transaction = Transaction<'static>;
    type Source<'a> = &'a Pool;

    const CAPABILITIES: Capabilities =
        Capabilities { sql: true, concurrent_writers: true, wake_ups: false, row_locks: true, tells_writers: false };

    async fn create() -> Result<Self, BoxError> {
        let url =
            std::env::var("PILLARBOX_TEST_MYSQL_URL").unwrap_or_else(|_| "mysql://root@127.0.0.1:3306/test".to_owned());
        let connections = PoolConstraints::new(0, 10).ok_or("a pool of 10")?;
        let options = OptsBuilder::from_opts(mysql_async::Opts::from_url(&url)?)
            .pool_opts(PoolOpts::default().with_constraints(connections))
            .prefer_socket(false);
        let pool = Pool::new(options);
        let unreachable = |error| format!("start MariaDB, or run scripts/test, which brings one: {error}");
        let database = format!("pillarbox_{}", Stamp::system().next_id()).to_lowercase();
        pool.get_conn().await.map_err(unreachable)?.query_drop(format!("CREATE DATABASE {database}")).await?;
        let store = connect(&url, &database).await?;
        Ok(Self { url, database, store, pool })
    }

    async fn destroy(self) -> Result<(), BoxError> {
        self.execute(&format!("DROP DATABASE {}", self.database)).await?;
        // Not awaited: it would wait for connections that a failed test may still hold.
        drop(self.pool);
        Ok(())
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn connect(&self) -> Result<Arc<dyn Store>, BoxError> {
        Ok(Arc::new(connect(&self.url, &self.database).await?))
    }

    fn source(&self) -> &Pool {
        &self.pool
    }

    async fn execute(&self, sql: &str) -> Result<(), BoxError> {
        Ok(self.pool.get_conn().await?.query_drop(sql).await?)
    }

    async fn query(&self, sql: &str) -> Result<Option<Vec<Option<String>>>, BoxError> {
        let row: Option<Row> = self.pool.get_conn().await?.query_first(sql).await?;
        let Some(row) = row else { return Ok(None) };
        let texts = row.unwrap().into_iter().map(mysql_async::from_value_opt::<Option<String>>);
        Ok(Some(texts.collect::<Result<_, _>>()?))
    }

    async fn execute_in(transaction: &mut Transaction<'static>, sql: &str) -> Result<(), BoxError> {
        Ok(transaction.query_drop(sql).await?)
    }

    async fn hold(&self, sql: &str) -> Result<Held, BoxError> {
        let (pool, sql) = (self.pool.clone(), sql.to_owned());
        let begin = async move {
            let mut transaction = pool.start_transaction(TxOpts::default()).await?;
            transaction.query_drop(sql).await?;
            Ok(async move { Ok(transaction.commit().await?) })
        };
        Held::begin(begin).await
    }

    async fn waiting(&self) -> Result<usize, BoxError> {
        // The server's own list of lock waits is not brought up to date while it is read again and again. No statement takes
        // so long here unless it waits.
        let waiting = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST
             WHERE COMMAND IN ('Query', 'Execute') AND TIME_MS > 300 AND INFO LIKE '%{}%' AND ID <> CONNECTION_ID()",
            self.database
        );
        let count: Option<u64> = self.pool.get_conn().await?.query_first(waiting).await?;
        Ok(usize::try_from(count.unwrap_or_default())?)
    }

    fn sql_time(seconds: i64) -> String {
        format!("UTC_TIMESTAMP(6) + INTERVAL {seconds} SECOND")
    }

    fn sql_hex(column: &str) -> String {
        format!("LOWER(HEX({column}))")
    }

    fn sql_json(bytes: usize) -> String {
        format!("CONCAT('\"', REPEAT('x', {}), '\"')", bytes - 2)
    }

    fn sql_text(column: &str) -> String {
        format!("CAST({column} AS CHAR)")
    }

    fn quote(identifier: &str) -> String {
        format!("`{identifier}`")
    }
}
