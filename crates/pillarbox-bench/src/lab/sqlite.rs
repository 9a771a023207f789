use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pillarbox::adapters::sqlx::{SqliteTx, begin_immediate};
use pillarbox::event::EnvelopeBuilder;
use pillarbox::handle::{Events, Registration, in_transaction, on_type};
use pillarbox::write::insert;
use pillarbox::{Delivery, Envelope, HandlerError, Outbox, SqliteStore, Store, TableName};
use sqlx::SqlitePool;
use tokio::time::Instant;

use super::yardstick::{ROWS, ids};
use super::{About, BATCH, BY_HAND, BenchDb, Counted, Gauge, Kind, Rows, Snapshot};
use crate::calls::Calls;
use crate::failure::Failure;
use pillarbox_program::failure::Failure as Common;
use pillarbox_program::report::per_second;
use pillarbox_program::store;

/// SQLite writes pages, so its yardstick has rows of about the size of an event and writes as many pages. See
/// `docs/decisions/0020-the-yardstick-of-sqlite-writes-as-much.md`.
const YARDSTICK: &str = "
    DROP TABLE IF EXISTS pillarbox_bench_yardstick;
    CREATE TABLE pillarbox_bench_yardstick (id INTEGER PRIMARY KEY, s INTEGER NOT NULL, payload TEXT NOT NULL);
";

const CLEAR: &str = "
    DROP TABLE IF EXISTS pillarbox_bench_event;
    DROP TABLE IF EXISTS pillarbox_bench_node;
    DROP TABLE IF EXISTS pillarbox_bench_partition;
    DROP TABLE IF EXISTS pillarbox_bench_migration;
    DROP TABLE IF EXISTS pillarbox_bench_inbox;
    DROP TABLE IF EXISTS pillarbox_bench_audit;
    DROP TABLE IF EXISTS pillarbox_bench_pause;
    DROP TABLE IF EXISTS pillarbox_bench_business;
    CREATE TABLE pillarbox_bench_business (id INTEGER PRIMARY KEY, total_cents INTEGER NOT NULL);
";

const COUNT: &str = "
    SELECT count(*), count(DISTINCT event_id), count(*) FILTER (WHERE status = 1),
           count(*) FILTER (WHERE status = 1 AND done_at - created_at <= 1000000), coalesce(max(done_at), 0)
    FROM pillarbox_bench_event WHERE event_type = 'bench.event'
";

/// The columns that only the outbox itself would fill are left out.
const ADD: &str = "
    WITH RECURSIVE numbers (n) AS (SELECT 0 WHERE ?5 > 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?5 - 1)
    INSERT INTO pillarbox_bench_event (event_id, event_type, aggregate_id, payload, status, available_at, done_at)
    SELECT ?1 || '-' || n, ?2, CASE WHEN ?1 = 'Due' THEN n END, ?3, ?4,
           CASE WHEN ?1 = 'Delayed' THEN ?6 + 86400000000 END, CASE WHEN ?4 IN (1, 3) THEN ?6 END
    FROM numbers
";

const BUSINESS: &str = "INSERT INTO pillarbox_bench_business (total_cents) VALUES (?1)";

const DESCRIBE: &str = "
    SELECT 'SQLite', sqlite_version()
    UNION ALL SELECT 'journal_mode', journal_mode FROM pragma_journal_mode
    UNION ALL SELECT 'page_size', CAST(page_size AS TEXT) FROM pragma_page_size
    UNION ALL SELECT 'synchronous', CAST(synchronous AS TEXT) FROM pragma_synchronous
";

/// SQLite: everything is written through the store's one writing connection.
pub(crate) struct SqliteLab {
    file: String,
    table: TableName,
    store: SqliteStore,
    pool: SqlitePool,
}

impl SqliteLab {
    pub(crate) async fn open(file: &str, table: &TableName) -> Result<Self, Failure> {
        let store = store::sqlite(file, table).await?;
        Ok(Self { file: file.to_owned(), table: table.clone(), pool: store.writer().clone(), store })
    }

    async fn execute(&self, sql: &'static str, doing: &'static str) -> Result<(), Failure> {
        sqlx::raw_sql(sql).execute(&self.pool).await.map_err(Failure::during(doing))?;
        Ok(())
    }
}

#[async_trait]
impl BenchDb for SqliteLab {
    fn about(&self) -> About {
        About {
            yardstick: "rows of 200 B, of UPDATE … WHERE id IN (1000 ids in a row), one connection",
            counted: Counted::Statements,
            statements: "not counted",
            wal: "not counted",
        }
    }

    fn shares_its_store(&self) -> bool {
        true
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn another_store(&self) -> Result<Arc<dyn Store>, Failure> {
        Ok(Arc::new(store::sqlite(&self.file, &self.table).await?))
    }

    async fn create_yardstick(&self) -> Result<(), Failure> {
        const DOING: &str = "create the yardstick";
        self.execute(YARDSTICK, DOING).await?;
        sqlx::query(
            "WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < ?1)
             INSERT INTO pillarbox_bench_yardstick (id, s, payload) SELECT id, 0, hex(randomblob(100)) FROM ids",
        )
        .bind(ROWS)
        .execute(&self.pool)
        .await
        .map_err(Failure::during(DOING))?;
        Ok(())
    }

    async fn clear(&self) -> Result<(), Failure> {
        self.execute(CLEAR, "create the bench's tables").await?;
        Ok(self.store.migrate().await?)
    }

    async fn rest(&self) -> Result<(), Failure> {
        self.execute("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA optimize;", "checkpoint the database").await
    }

    async fn yardstick(&self, time: Duration) -> Result<f64, Failure> {
        const DOING: &str = "measure the yardstick";
        const UPDATE: &str = "UPDATE pillarbox_bench_yardstick SET s = 1 - s
                              WHERE id IN (SELECT value FROM json_each(?1))";
        let mut connection = self.pool.acquire().await.map_err(Failure::during(DOING))?;
        let (started, mut rows) = (Instant::now(), 0);
        for ids in ids().take_while(|_| started.elapsed() < time) {
            let ids = serde_json::to_string(&ids)?;
            sqlx::query(UPDATE).bind(ids).execute(&mut *connection).await.map_err(Failure::during(DOING))?;
            rows += BATCH as u64;
        }
        Ok(per_second(rows, started.elapsed().as_secs_f64()))
    }

    async fn now(&self) -> Result<i64, Failure> {
        sqlx::query_scalar("SELECT CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000")
            .fetch_one(&self.pool)
            .await
            .map_err(Failure::during("read the database's clock"))
    }

    async fn transact(&self, business_row: bool, events: Vec<Envelope>) -> Result<(), Failure> {
        const DOING: &str = "write";
        let mut tx = begin_immediate(&self.pool).await.map_err(Failure::during(DOING))?;
        if business_row {
            sqlx::query(BUSINESS).bind(1999).execute(&mut *tx).await.map_err(Failure::during(DOING))?;
        }
        if !events.is_empty() {
            insert(&self.store, &mut tx, events).await.map_err(Failure::during(DOING))?;
        }
        tx.commit().await.map_err(Failure::during(DOING))
    }

    async fn write(&self, outbox: &Outbox, event: EnvelopeBuilder) -> Result<Instant, Failure> {
        const DOING: &str = "write through the outbox";
        let mut tx = outbox.begin(&self.pool).await.map_err(Failure::during(DOING))?;
        outbox.write(&mut tx, event).await.map_err(Failure::during(DOING))?;
        tx.commit().await.map_err(Failure::during(DOING))?;
        Ok(Instant::now())
    }

    fn handler_in_transaction(&self, calls: Arc<Calls>) -> Registration {
        let handler = move |delivery: Delivery, mut tx: SqliteTx| {
            let calls = Arc::clone(&calls);
            async move {
                sqlx::query(BUSINESS).bind(1999).execute(&mut *tx).await.map_err(HandlerError::retryable)?;
                calls.note(&delivery)
            }
        };
        on_type(Events::Others, in_transaction(self.pool.clone(), handler))
    }

    async fn add(&self, kind: Kind, rows: u32, payload: &str) -> Result<(), Failure> {
        let now = self.now().await?;
        sqlx::query(ADD)
            .bind(format!("{kind:?}"))
            .bind(kind.event_type())
            .bind(payload)
            .bind(kind.status())
            .bind(rows)
            .bind(now)
            .execute(&self.pool)
            .await
            .map_err(Failure::during("fill the table"))?;
        Ok(())
    }

    /// SQLite has no row versions to hold: `--idle-transaction` is refused before this is called.
    async fn hold_snapshot(&self) -> Result<Snapshot, Failure> {
        Err(Common::Service("names a SQLite file, where no snapshot is in the way of anything").into())
    }

    async fn drain_by_hand(&self) -> Result<u64, Failure> {
        const DOING: &str = "drain by hand";
        const PENDING: &str = "SELECT seq, event_id, event_type, payload FROM pillarbox_bench_event
                               WHERE status IN (0, 2) AND available_at IS NULL ORDER BY seq LIMIT ?1";
        const DONE: &str = "UPDATE pillarbox_bench_event SET status = 1, done_at = ?2 WHERE seq = ?1";
        let mut drained = 0;
        loop {
            let now = self.now().await?;
            let mut tx = begin_immediate(&self.pool).await.map_err(Failure::during(DOING))?;
            let rows: Vec<(i64, String, String, String)> = sqlx::query_as(PENDING)
                .bind(BY_HAND as i64)
                .fetch_all(&mut *tx)
                .await
                .map_err(Failure::during(DOING))?;
            if rows.is_empty() {
                return Ok(drained);
            }
            for (seq, ..) in rows {
                let done = sqlx::query(DONE).bind(seq).bind(now).execute(&mut *tx).await;
                drained += done.map_err(Failure::during(DOING))?.rows_affected();
            }
            tx.commit().await.map_err(Failure::during(DOING))?;
        }
    }

    async fn count(&self) -> Result<Rows, Failure> {
        let row: (i64, i64, i64, i64, i64) =
            sqlx::query_as(COUNT).fetch_one(&self.pool).await.map_err(Failure::during("count the rows"))?;
        Ok(Rows::from_columns(row.into()))
    }

    /// The version, and the pragmas that speed depends on.
    async fn describe(&self) -> Result<Vec<(String, String)>, Failure> {
        let facts = sqlx::query_as(DESCRIBE).fetch_all(&self.pool).await;
        facts.map_err(Failure::during("read the database's settings"))
    }

    /// SQLite keeps no such counters.
    async fn gauge(&self) -> Result<Gauge, Failure> {
        Ok(Gauge::default())
    }

    async fn statements(&self) -> Result<Option<u64>, Failure> {
        Ok(None)
    }

    async fn close(&self) {
        self.store.close().await;
    }
}
