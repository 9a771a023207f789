use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::{Client, Pool};
use pillarbox::adapters::tokio_postgres::PooledTx;
use pillarbox::event::EnvelopeBuilder;
use pillarbox::handle::{Events, Registration, in_transaction, on_type};
use pillarbox::write::insert;
use pillarbox::{Delivery, Envelope, HandlerError, Outbox, PostgresStore, Store, TableName};
use tokio::time::{Instant, sleep};

use super::yardstick::{ROWS, ids};
use super::{About, BY_HAND, BenchDb, Counted, Gauge, Kind, Rows, Snapshot, count};
use crate::calls::Calls;
use crate::failure::Failure;
use pillarbox_program::report::per_second;
use pillarbox_program::service::postgres_pool;
use pillarbox_program::store;

const YARDSTICK: &str = "
    DROP TABLE IF EXISTS pillarbox_bench_yardstick;
    CREATE TABLE pillarbox_bench_yardstick (id bigint PRIMARY KEY, s int NOT NULL);
";

const CLEAR: &str = "
    DROP TABLE IF EXISTS pillarbox_bench_event, pillarbox_bench_node, pillarbox_bench_partition,
                         pillarbox_bench_migration, pillarbox_bench_inbox, pillarbox_bench_audit, pillarbox_bench_pause, pillarbox_bench_business;
    CREATE TABLE pillarbox_bench_business (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, total_cents bigint);
";

const COUNT: &str = "
    SELECT count(*), count(DISTINCT event_id), count(*) FILTER (WHERE status = 1),
           count(*) FILTER (WHERE status = 1 AND done_at - created_at <= interval '1 second'),
           coalesce((extract(epoch FROM max(done_at)) * 1000000)::bigint, 0)
    FROM pillarbox_bench_event WHERE event_type = 'bench.event'
";

/// The columns that only the outbox itself would fill are left out.
const ADD: &str = "
    INSERT INTO pillarbox_bench_event (event_id, event_type, aggregate_id, payload, status, available_at, done_at)
    SELECT $1::text || '-' || n, $2, CASE WHEN $1 = 'Due' THEN n::text END, $3::text::json, $4::smallint,
           CASE WHEN $1 = 'Delayed' THEN now() + interval '1 day' END, CASE WHEN $4 IN (1, 3) THEN now() END
    FROM generate_series(0, $5::bigint - 1) AS n
";

const BUSINESS: &str = "INSERT INTO pillarbox_bench_business (total_cents) VALUES ($1)";

const PENDING: &str = "
    SELECT seq, event_id, event_type, payload::text FROM pillarbox_bench_event
    WHERE status = 0 AND available_at IS NULL ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED
";

const GAUGE: &str = "
    SELECT (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = to_regclass('pillarbox_bench_event')),
           pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint
";

/// Leaves out the statements that read the counters: no others name them.
const STATEMENTS: &str = "
    SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query NOT LIKE '%pg_stat_%'
";

const TRANSACTIONS: &str =
    "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";

const DESCRIBE: &str = "
    SELECT 'PostgreSQL', current_setting('server_version')
    UNION ALL
    SELECT * FROM (
        SELECT name, current_setting(name) FROM pg_settings
        WHERE name IN ('autovacuum', 'checkpoint_timeout', 'fsync', 'full_page_writes', 'jit', 'max_wal_size',
                       'shared_buffers', 'synchronous_commit', 'wal_compression', 'wal_level')
        ORDER BY name
    ) AS settings
";

/// PostgreSQL: the writers' pool is separate from the outbox's.
pub(crate) struct PostgresLab {
    url: String,
    table: TableName,
    store: PostgresStore,
    pool: Pool,
    /// True if every statement is counted, and not only every transaction.
    has_statements: bool,
}

impl PostgresLab {
    pub(crate) async fn open(url: &str, table: &TableName, connections: usize) -> Result<Self, Failure> {
        // One more for the meter, which must not wait for a writer, and one for a transaction that is held.
        let (store, pool) = (store::postgres(url, table).await?, postgres_pool(url, connections + 2)?);
        let mut lab = Self { url: url.to_owned(), table: table.clone(), store, pool, has_statements: false };
        // The extension may be missing, not loaded or not for this user; all of that is an error.
        lab.has_statements = lab.client().await?.query_one(STATEMENTS, &[]).await.is_ok();
        Ok(lab)
    }

    /// Closes idle connections and gives their sessions a moment to report their work: a session that goes on reports
    /// only now and then.
    async fn let_sessions_report(&self) {
        const A_MOMENT: Duration = Duration::from_millis(100);
        self.pool.retain(|_, _| false);
        sleep(A_MOMENT).await;
    }

    /// Raises the read point as far as it goes, which takes several calls above many rows.
    async fn raise_read_point(&self, client: &Client) -> Result<(), Failure> {
        const DOING: &str = "read the read point";
        const POINT: &str = "SELECT read_point FROM pillarbox_bench_partition WHERE partition = 0";
        const A_MOMENT: Duration = Duration::from_millis(50);
        let mut last = None;
        loop {
            // It is raised once a moment at most.
            if !self.store.raise_read_point().await? {
                sleep(A_MOMENT).await;
                continue;
            }
            let row = client.query_opt(POINT, &[]).await.map_err(Failure::during(DOING))?;
            let point: Option<i64> =
                row.map(|row| row.try_get(0)).transpose().map_err(Failure::during(DOING))?.flatten();
            if point == last {
                return Ok(());
            }
            last = point;
        }
    }

    async fn client(&self) -> Result<Client, Failure> {
        self.pool.get().await.map_err(Failure::during("connect to the database"))
    }
}

#[async_trait]
impl BenchDb for PostgresLab {
    fn about(&self) -> About {
        About {
            yardstick: "rows of UPDATE … WHERE id = ANY(1000 ids in a row), one connection",
            counted: if self.has_statements { Counted::Statements } else { Counted::Transactions },
            statements: if self.has_statements {
                "statements in this database, by pg_stat_statements"
            } else {
                "transactions in this database; statements need pg_stat_statements"
            },
            wal: "of write-ahead log, of the whole server",
        }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn another_store(&self) -> Result<Arc<dyn Store>, Failure> {
        Ok(Arc::new(store::postgres(&self.url, &self.table).await?))
    }

    async fn create_yardstick(&self) -> Result<(), Failure> {
        const DOING: &str = "create the yardstick";
        const FILL: &str = "INSERT INTO pillarbox_bench_yardstick (id, s) SELECT generate_series(1, $1::bigint), 0";
        let client = self.client().await?;
        client.batch_execute(YARDSTICK).await.map_err(Failure::during(DOING))?;
        client.execute(FILL, &[&ROWS]).await.map_err(Failure::during(DOING))?;
        Ok(())
    }

    async fn clear(&self) -> Result<(), Failure> {
        let client = self.client().await?;
        client.batch_execute(CLEAR).await.map_err(Failure::during("create the bench's tables"))?;
        Ok(self.store.migrate().await?)
    }

    async fn rest(&self) -> Result<(), Failure> {
        let client = self.client().await?;
        for table in ["event", "business", "yardstick"] {
            let vacuum = format!("VACUUM (ANALYZE) pillarbox_bench_{table}");
            client.batch_execute(&vacuum).await.map_err(Failure::during("vacuum the bench's tables"))?;
        }
        // As it is where rows were delivered by nodes, and not put there as they are.
        self.raise_read_point(&client).await?;
        if let Err(error) = client.batch_execute("CHECKPOINT").await {
            let reason = error.as_db_error().map_or_else(|| error.to_string(), |refusal| refusal.message().to_owned());
            tracing::warn!(reason, "no checkpoint between the phases: one may be taxed for what another has written");
        }
        Ok(())
    }

    async fn yardstick(&self, time: Duration) -> Result<f64, Failure> {
        const DOING: &str = "measure the yardstick";
        const UPDATE: &str = "UPDATE pillarbox_bench_yardstick SET s = 1 - s WHERE id = ANY($1)";
        let client = self.client().await?;
        let update = client.prepare(UPDATE).await.map_err(Failure::during(DOING))?;
        let (started, mut rows) = (Instant::now(), 0);
        for ids in ids().take_while(|_| started.elapsed() < time) {
            rows += client.execute(&update, &[&ids]).await.map_err(Failure::during(DOING))?;
        }
        Ok(per_second(rows, started.elapsed().as_secs_f64()))
    }

    async fn now(&self) -> Result<i64, Failure> {
        const DOING: &str = "read the database's clock";
        const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
        let row = self.client().await?.query_one(NOW, &[]).await.map_err(Failure::during(DOING))?;
        row.try_get(0).map_err(Failure::during(DOING))
    }

    async fn transact(&self, business_row: bool, events: Vec<Envelope>) -> Result<(), Failure> {
        const DOING: &str = "write";
        let mut client = self.client().await?;
        let mut tx = client.transaction().await.map_err(Failure::during(DOING))?;
        if business_row {
            let business = tx.prepare_cached(BUSINESS).await.map_err(Failure::during(DOING))?;
            tx.execute(&business, &[&1999_i64]).await.map_err(Failure::during(DOING))?;
        }
        if !events.is_empty() {
            insert(&self.store, &mut tx, events).await.map_err(Failure::during(DOING))?;
        }
        tx.commit().await.map_err(Failure::during(DOING))
    }

    async fn write(&self, outbox: &Outbox, event: EnvelopeBuilder) -> Result<Instant, Failure> {
        const DOING: &str = "write through the outbox";
        let mut client = self.client().await?;
        let mut tx = outbox.begin(&mut client).await.map_err(Failure::during(DOING))?;
        outbox.write(&mut tx, event).await.map_err(Failure::during(DOING))?;
        tx.commit().await.map_err(Failure::during(DOING))?;
        Ok(Instant::now())
    }

    fn handler_in_transaction(&self, calls: Arc<Calls>) -> Registration {
        let handler = move |delivery: Delivery, tx: PooledTx| {
            let calls = Arc::clone(&calls);
            async move {
                let business = tx.prepare_cached(BUSINESS).await.map_err(HandlerError::retryable)?;
                tx.execute(&business, &[&1999_i64]).await.map_err(HandlerError::retryable)?;
                calls.note(&delivery)
            }
        };
        on_type(Events::Others, in_transaction(self.pool.clone(), handler))
    }

    async fn add(&self, kind: Kind, rows: u32, payload: &str) -> Result<(), Failure> {
        let (name, rows) = (format!("{kind:?}"), i64::from(rows));
        let client = self.client().await?;
        let inserted = client.execute(ADD, &[&name, &kind.event_type(), &payload, &kind.status(), &rows]).await;
        inserted.map_err(Failure::during("fill the table"))?;
        Ok(())
    }

    async fn hold_snapshot(&self) -> Result<Snapshot, Failure> {
        // The pool must not get it back with its transaction.
        let client = Client::take(self.client().await?);
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pillarbox_bench_business";
        client.batch_execute(begin).await.map_err(Failure::during("hold a snapshot"))?;
        Ok(Box::new(client))
    }

    async fn drain_by_hand(&self) -> Result<u64, Failure> {
        const DOING: &str = "drain by hand";
        const DONE: &str = "UPDATE pillarbox_bench_event SET status = 1, done_at = clock_timestamp() WHERE seq = $1";
        let mut client = self.client().await?;
        let pending = client.prepare(PENDING).await.map_err(Failure::during(DOING))?;
        let done = client.prepare(DONE).await.map_err(Failure::during(DOING))?;
        let mut drained = 0;
        loop {
            let tx = client.transaction().await.map_err(Failure::during(DOING))?;
            let rows = tx.query(&pending, &[&(BY_HAND as i64)]).await.map_err(Failure::during(DOING))?;
            if rows.is_empty() {
                return Ok(drained);
            }
            for row in rows {
                let seq: i64 = row.try_get(0).map_err(Failure::during(DOING))?;
                drained += tx.execute(&done, &[&seq]).await.map_err(Failure::during(DOING))?;
            }
            tx.commit().await.map_err(Failure::during(DOING))?;
        }
    }

    async fn count(&self) -> Result<Rows, Failure> {
        const DOING: &str = "count the rows";
        let row = self.client().await?.query_one(COUNT, &[]).await.map_err(Failure::during(DOING))?;
        let mut columns = [0_i64; 5];
        for (index, column) in columns.iter_mut().enumerate() {
            *column = row.try_get(index).map_err(Failure::during(DOING))?;
        }
        Ok(Rows::from_columns(columns))
    }

    async fn describe(&self) -> Result<Vec<(String, String)>, Failure> {
        const DOING: &str = "read the database's settings";
        let rows = self.client().await?.query(DESCRIBE, &[]).await.map_err(Failure::during(DOING))?;
        let facts = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        facts.collect::<Result<_, tokio_postgres::Error>>().map_err(Failure::during(DOING))
    }

    async fn gauge(&self) -> Result<Gauge, Failure> {
        const DOING: &str = "read the database's counters";
        let client = self.client().await?;
        let gauge = client.prepare_cached(GAUGE).await.map_err(Failure::during(DOING))?;
        let row = client.query_one(&gauge, &[]).await.map_err(Failure::during(DOING))?;
        let column = |index| row.try_get::<_, Option<i64>>(index).map_err(Failure::during(DOING));
        Ok(Gauge { dead_tuples: column(0)?.map(count), wal_bytes: column(1)?.map(count) })
    }

    async fn statements(&self) -> Result<Option<u64>, Failure> {
        const DOING: &str = "read the database's counters";
        self.let_sessions_report().await;
        let sql = if self.has_statements { STATEMENTS } else { TRANSACTIONS };
        let row = self.client().await?.query_one(sql, &[]).await.map_err(Failure::during(DOING))?;
        Ok(Some(count(row.try_get(0).map_err(Failure::during(DOING))?)))
    }

    async fn close(&self) {
        self.pool.close();
        self.store.close().await;
    }
}
