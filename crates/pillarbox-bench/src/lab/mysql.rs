use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, IsolationLevel, Opts, Pool, TxOpts, Value};
use pillarbox::adapters::mysql_async::MysqlTx;
use pillarbox::event::EnvelopeBuilder;
use pillarbox::handle::{Events, Registration, in_transaction, on_type};
use pillarbox::write::insert;
use pillarbox::{Delivery, Envelope, HandlerError, MysqlStore, Outbox, Store, TableName};
use tokio::time::{Instant, sleep};

use super::yardstick::{ROWS, ids};
use super::{About, BATCH, BY_HAND, BenchDb, Counted, Gauge, Kind, Rows, Snapshot};
use crate::calls::Calls;
use crate::failure::Failure;
use pillarbox_program::report::per_second;
use pillarbox_program::service::mysql_options;
use pillarbox_program::store;

const YARDSTICK: &str = "
    DROP TABLE IF EXISTS pillarbox_bench_yardstick;
    CREATE TABLE pillarbox_bench_yardstick (id BIGINT PRIMARY KEY, s INT NOT NULL);
";

const CLEAR: &str = "
    DROP TABLE IF EXISTS pillarbox_bench_event, pillarbox_bench_node, pillarbox_bench_partition,
                         pillarbox_bench_migration, pillarbox_bench_inbox, pillarbox_bench_audit, pillarbox_bench_pause, pillarbox_bench_business;
    CREATE TABLE pillarbox_bench_business (id BIGINT AUTO_INCREMENT PRIMARY KEY, total_cents BIGINT NOT NULL);
";

const COUNT: &str = "
    SELECT COUNT(*), COUNT(DISTINCT event_id), COUNT(CASE WHEN status = 1 THEN 1 END),
           COUNT(CASE WHEN status = 1 AND done_at <= created_at + INTERVAL 1 SECOND THEN 1 END),
           COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', MAX(done_at)), 0)
    FROM pillarbox_bench_event WHERE event_type = 'bench.event'
";

/// The most rows that one transaction inserts: rolling back many millions takes hours.
const ADDED_AT_ONCE: u32 = 100_000;

/// The columns that only the outbox itself would fill are left out. Numbers are composed of their digits, since the
/// depth of recursion is limited, by settings of different names.
const ADD: &str = "
    INSERT INTO pillarbox_bench_event (event_id, event_type, aggregate_id, payload, status, available_at, done_at)
    WITH digit (n) AS (SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
                       UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9),
         number (n) AS (SELECT a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n
                        FROM digit a, digit b, digit c, digit d, digit e)
    SELECT CONCAT(:kind, '-', n + :first), :event_type, CASE WHEN :kind = 'Due' THEN n + :first END, :payload, :status,
           CASE WHEN :kind = 'Delayed' THEN UTC_TIMESTAMP(6) + INTERVAL 1 DAY END,
           CASE WHEN :status IN (1, 3) THEN UTC_TIMESTAMP(6) END
    FROM number WHERE n < :rows ORDER BY n
";

/// The version comes with the name of the product on MariaDB, and alone on MySQL.
const DESCRIBE: &str = "
    SHOW GLOBAL VARIABLES WHERE Variable_name IN
        ('version', 'innodb_buffer_pool_size', 'innodb_doublewrite', 'innodb_flush_log_at_trx_commit',
         'innodb_log_file_size', 'log_bin', 'sync_binlog', 'transaction_isolation', 'tx_isolation')
";

const BUSINESS: &str = "INSERT INTO pillarbox_bench_business (total_cents) VALUES (?)";

/// Rows that are due at once are those of queue 0, in the index that begins with it.
const PENDING: &str = "
    SELECT seq, event_id, event_type, payload FROM pillarbox_bench_event
    WHERE queue = 0 AND due_at IS NULL ORDER BY seq LIMIT ? FOR UPDATE SKIP LOCKED
";

/// MySQL and MariaDB: the writers' pool is separate from the outbox's.
pub(crate) struct MysqlLab {
    url: String,
    table: TableName,
    store: MysqlStore,
    options: Opts,
    pool: Pool,
}

impl MysqlLab {
    pub(crate) async fn open(url: &str, table: &TableName, connections: usize) -> Result<Self, Failure> {
        // One more for the meter, which must not wait for a writer.
        let (store, options) = (store::mysql(url, table).await?, mysql_options(url, connections + 1)?);
        let pool = Pool::new(options.clone());
        Ok(Self { url: url.to_owned(), table: table.clone(), store, options, pool })
    }

    async fn connection(&self) -> Result<Conn, Failure> {
        self.pool.get_conn().await.map_err(Failure::during("connect to the database"))
    }

    async fn execute(&self, sql: &str, doing: &'static str) -> Result<(), Failure> {
        self.connection().await?.query_drop(sql).await.map_err(Failure::during(doing))
    }

    /// One of the server's own counters; `None` if it has none of that name.
    async fn counter(&self, name: &str) -> Result<Option<u64>, Failure> {
        let sql = format!("SHOW GLOBAL STATUS LIKE '{name}'");
        let row: Option<(String, u64)> =
            self.connection().await?.query_first(sql).await.map_err(Failure::during("read the database's counters"))?;
        Ok(row.map(|(_, value)| value))
    }
}

#[async_trait]
impl BenchDb for MysqlLab {
    fn about(&self) -> About {
        About {
            yardstick: "rows of UPDATE … WHERE id IN (1000 ids in a row), one connection",
            counted: Counted::Statements,
            statements: "statements of the whole server",
            wal: "of redo log, of the whole server",
        }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn another_store(&self) -> Result<Arc<dyn Store>, Failure> {
        Ok(Arc::new(store::mysql(&self.url, &self.table).await?))
    }

    async fn create_yardstick(&self) -> Result<(), Failure> {
        const DOING: &str = "create the yardstick";
        self.execute(YARDSTICK, DOING).await?;
        for ids in ids().take(usize::try_from(ROWS).unwrap_or_default() / BATCH) {
            let rows = format!("INSERT INTO pillarbox_bench_yardstick (id, s) VALUES {}", list(&ids, "(", ", 0)"));
            self.execute(&rows, DOING).await?;
        }
        Ok(())
    }

    async fn clear(&self) -> Result<(), Failure> {
        self.execute(CLEAR, "create the bench's tables").await?;
        Ok(self.store.migrate().await?)
    }

    /// Waits while the server removes old row versions, which it does in the background, and refreshes the statistics
    /// of the tables.
    async fn rest(&self) -> Result<(), Failure> {
        const DOING: &str = "let the database clean up";
        const LOOK_AGAIN: Duration = Duration::from_millis(100);
        let mut left = u64::MAX;
        // Others may use the server or hold old versions, so the wait ends when the list no longer shrinks.
        while let Some(now) = self.counter("Innodb_history_list_length").await?.filter(|now| *now < left) {
            left = now;
            sleep(LOOK_AGAIN).await;
        }
        for table in ["event", "business", "yardstick"] {
            self.execute(&format!("ANALYZE TABLE pillarbox_bench_{table}"), DOING).await?;
        }
        Ok(())
    }

    async fn yardstick(&self, time: Duration) -> Result<f64, Failure> {
        const DOING: &str = "measure the yardstick";
        // MariaDB turns a list of a thousand into a join, which is slower; the store's own sessions forbid it, too.
        const PLAIN_LISTS: &str = "SET @pillarbox = 0 /*M!100600 , SESSION in_predicate_conversion_threshold = 0 */";
        let mut connection = self.connection().await?;
        connection.query_drop(PLAIN_LISTS).await.map_err(Failure::during(DOING))?;
        let (started, mut rows) = (Instant::now(), 0);
        for ids in ids().take_while(|_| started.elapsed() < time) {
            let ids = list(&ids, "", "");
            let update = format!("UPDATE pillarbox_bench_yardstick SET s = 1 - s WHERE id IN ({ids})");
            connection.query_drop(update).await.map_err(Failure::during(DOING))?;
            rows += connection.affected_rows();
        }
        Ok(per_second(rows, started.elapsed().as_secs_f64()))
    }

    async fn now(&self) -> Result<i64, Failure> {
        const DOING: &str = "read the database's clock";
        const NOW: &str = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
        let now: Option<i64> = self.connection().await?.query_first(NOW).await.map_err(Failure::during(DOING))?;
        now.ok_or("it has none").map_err(Failure::during(DOING))
    }

    async fn transact(&self, business_row: bool, events: Vec<Envelope>) -> Result<(), Failure> {
        const DOING: &str = "write";
        let mut tx = self.pool.start_transaction(TxOpts::default()).await.map_err(Failure::during(DOING))?;
        if business_row {
            tx.exec_drop(BUSINESS, (1999,)).await.map_err(Failure::during(DOING))?;
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
        let handler = move |delivery: Delivery, mut tx: MysqlTx| {
            let calls = Arc::clone(&calls);
            async move {
                tx.exec_drop(BUSINESS, (1999,)).await.map_err(HandlerError::retryable)?;
                calls.note(&delivery)
            }
        };
        on_type(Events::Others, in_transaction(self.pool.clone(), handler))
    }

    async fn add(&self, kind: Kind, rows: u32, payload: &str) -> Result<(), Failure> {
        let mut connection = self.connection().await?;
        for first in (0..rows).step_by(ADDED_AT_ONCE as usize) {
            let values: [(&str, Value); 6] = [
                ("kind", format!("{kind:?}").into()),
                ("event_type", kind.event_type().into()),
                ("payload", payload.into()),
                ("status", kind.status().into()),
                ("rows", ADDED_AT_ONCE.min(rows - first).into()),
                ("first", first.into()),
            ];
            connection.exec_drop(ADD, values.to_vec()).await.map_err(Failure::during("fill the table"))?;
        }
        Ok(())
    }

    async fn hold_snapshot(&self) -> Result<Snapshot, Failure> {
        const DOING: &str = "hold a snapshot";
        // Without a pool, which would end the transaction when it gets the connection back.
        let mut connection = Conn::new(self.options.clone()).await.map_err(Failure::during(DOING))?;
        let begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT";
        connection.query_drop(begin).await.map_err(Failure::during(DOING))?;
        Ok(Box::new(connection))
    }

    async fn drain_by_hand(&self) -> Result<u64, Failure> {
        const DOING: &str = "drain by hand";
        const DONE: &str = "UPDATE pillarbox_bench_event SET status = 1, done_at = UTC_TIMESTAMP(6) WHERE seq = ?";
        let mut connection = self.connection().await?;
        let mut options = TxOpts::default();
        // At the default level it locks the gaps between the rows, and SKIP LOCKED skips more than is locked.
        options.with_isolation_level(IsolationLevel::ReadCommitted);
        let mut drained = 0;
        loop {
            let mut tx = connection.start_transaction(options.clone()).await.map_err(Failure::during(DOING))?;
            let rows: Vec<(i64, String, String, String)> =
                tx.exec(PENDING, (BY_HAND,)).await.map_err(Failure::during(DOING))?;
            if rows.is_empty() {
                return Ok(drained);
            }
            for (seq, ..) in rows {
                tx.exec_drop(DONE, (seq,)).await.map_err(Failure::during(DOING))?;
                drained += tx.affected_rows();
            }
            tx.commit().await.map_err(Failure::during(DOING))?;
        }
    }

    async fn count(&self) -> Result<Rows, Failure> {
        const DOING: &str = "count the rows";
        let row: Option<(i64, i64, i64, i64, i64)> =
            self.connection().await?.query_first(COUNT).await.map_err(Failure::during(DOING))?;
        Ok(Rows::from_columns(row.unwrap_or_default().into()))
    }

    async fn describe(&self) -> Result<Vec<(String, String)>, Failure> {
        let facts = self.connection().await?.query(DESCRIBE).await;
        facts.map_err(Failure::during("read the database's settings"))
    }

    async fn gauge(&self) -> Result<Gauge, Failure> {
        Ok(Gauge { dead_tuples: None, wal_bytes: self.counter("Innodb_os_log_written").await? })
    }

    async fn statements(&self) -> Result<Option<u64>, Failure> {
        self.counter("Questions").await
    }

    async fn close(&self) {
        self.store.close().await;
        if let Err(error) = self.pool.clone().disconnect().await {
            tracing::debug!(%error, "the connections were not closed in order");
        }
    }
}

/// A list of SQL, each number between `before` and `after`.
fn list(ids: &[i64], before: &str, after: &str) -> String {
    let mut text = String::with_capacity(ids.len() * 12);
    for (index, id) in ids.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}{before}{id}{after}");
    }
    text
}
