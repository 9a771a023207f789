//! The SQLite store against its port, in a database file of its own for each test.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use pillarbox_core::error::BoxError;
use pillarbox_core::event::Stamp;
use pillarbox_core::store::Store;
use pillarbox_sqlite::{SqliteOptions, SqliteStore};
use pillarbox_sqlx::Sqlx;
use pillarbox_testkit::{Capabilities, Harness, conformance};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions, SqliteTransaction};
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

fn main() -> ExitCode {
    conformance::run::<SqliteHarness>()
}

struct SqliteHarness {
    directory: PathBuf,
    store: SqliteStore,
    /// Beside the store's own connections, as an SQL prompt is.
    prompt: SqlitePool,
}

async fn open(directory: &std::path::Path) -> Result<SqliteStore, BoxError> {
    let file = directory.join("shop.db");
    let file = file.to_str().ok_or("the directory for temporary files is no UTF-8")?;
    Ok(SqliteOptions::new(file).table("shop_event").open().await?)
}

impl Harness for SqliteHarness {
    type Marker = Sqlx;
    type Transaction = SqliteTransaction<'static>;
    type Source<'a> = &'a SqlitePool;

    const CAPABILITIES: Capabilities =
        Capabilities { sql: true, concurrent_writers: false, wake_ups: false, row_locks: false, tells_writers: true };

    async fn create() -> Result<Self, BoxError> {
        let directory = std::env::temp_dir().join(format!("pillarbox-conformance-{}", Stamp::system().next_id()));
        std::fs::create_dir(&directory)?;
        let store = open(&directory).await?;
        let options = SqliteConnectOptions::new().filename(directory.join("shop.db"));
        let prompt = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
        Ok(Self { directory, store, prompt })
    }

    async fn destroy(self) -> Result<(), BoxError> {
        self.prompt.close().await;
        Ok(std::fs::remove_dir_all(&self.directory)?)
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn connect(&self) -> Result<Arc<dyn Store>, BoxError> {
        Ok(Arc::new(open(&self.directory).await?))
    }

    fn source(&self) -> &SqlitePool {
        self.store.writer()
    }

    async fn execute(&self, sql: &str) -> Result<(), BoxError> {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&self.prompt).await?;
        Ok(())
    }

    async fn query(&self, sql: &str) -> Result<Option<Vec<Option<String>>>, BoxError> {
        let row = sqlx::query(AssertSqlSafe(sql.to_owned())).persistent(false).fetch_optional(&self.prompt).await?;
        let texts = |row: sqlx::sqlite::SqliteRow| (0..row.len()).map(|index| row.try_get(index)).collect();
        Ok(row.map(texts).transpose()?)
    }

    async fn execute_in(transaction: &mut SqliteConnection, sql: &str) -> Result<(), BoxError> {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(transaction).await?;
        Ok(())
    }

    fn sql_time(seconds: i64) -> String {
        format!("(unixepoch('now') + {seconds}) * 1000000")
    }

    fn sql_hex(column: &str) -> String {
        format!("CASE WHEN {column} IS NULL THEN NULL ELSE lower(hex({column})) END")
    }

    fn sql_json(bytes: usize) -> String {
        format!("'\"' || replace(hex(zeroblob({})), '00', 'x') || '\"'", bytes - 2)
    }
}
