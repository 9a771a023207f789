use pillarbox_core::store::operation;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::ownership::{Acquired, Epochs, Fence, LeaseMark, Mode, NodeId, Reclaimed, Renewal, Share};
use pillarbox_core::row::Verdict;
use pillarbox_core::store::{
    BegunAttempt, Fetch, Fetched, LeaseClock, NodeStatus, RowId, Store, StoreInfo, TableName, Writers,
};
use pillarbox_core::write::{Dialect, NewRow, Statement};
use pillarbox_sqlx::begin_immediate;
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Sqlite, SqlitePool, SqliteTransaction, query_scalar};
use tokio::time::{Instant, sleep, timeout};

use crate::error::store_error;
use crate::insert::Inserts;
use crate::sql::Sql;
use crate::{SqliteOptions, claim, database, fetch, migrate, order, ownership, reclaim, settle, share};

/// An outbox table in a SQLite database. Cheap to clone; all clones share the connections.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    info: StoreInfo,
    table: TableName,
    sql: Sql,
    inserts: Inserts,
    writer: SqlitePool,
    readers: SqlitePool,
    busy_timeout: Duration,
    lease_clock: LeaseClock,
}

impl SqliteStore {
    /// Opens a database with the default [`SqliteOptions`], by its path (`shop.db`) or URL (`sqlite://shop.db`). The file
    /// is created if it is missing.
    ///
    /// # Errors
    /// As [`SqliteOptions::open`].
    pub async fn open(location: &str) -> Result<Self, StoreError> {
        SqliteOptions::new(location).open().await
    }

    /// The one connection that this process should write through, behind a fair queue.
    ///
    /// Begin your transactions here, with `outbox.begin(store.writer())` or `pillarbox_sqlx::begin_immediate`: they then
    /// take turns with the store instead of competing with it for the database's lock, and wait for other processes for up
    /// to [`SqliteOptions::busy_timeout`]. The store waits while you hold one, so keep them short: one that is held for longer
    /// than a lease (15 s) keeps the node from renewing it, and delivery stops until it has ended. Read through a pool of your
    /// own.
    ///
    /// sqlx's own `begin` works too but starts without the lock; it then waits 2 ms for another process at the first write.
    #[must_use]
    pub fn writer(&self) -> &SqlitePool {
        &self.inner.writer
    }

    pub(crate) async fn open_file(file: &Path, table: TableName, options: &SqliteOptions) -> Result<Self, StoreError> {
        let address = file.display().to_string();
        check_place(file, &address)?;
        create(file);
        let store = Self {
            inner: Arc::new(Inner {
                info: StoreInfo::new(Dialect::SQLITE, address, table.to_string()),
                sql: Sql::new(&table),
                inserts: Inserts::new(&table),
                table,
                writer: database::writer(file, options),
                readers: database::readers(file, options),
                busy_timeout: options.busy_timeout,
                lease_clock: LeaseClock::default(),
            }),
        };
        store.connect().await?;
        Ok(store)
    }

    /// Opens the write connection, which creates the file and switches it to write-ahead mode.
    async fn connect(&self) -> Result<(), StoreError> {
        const OPERATION: &str = operation::CONNECT;
        let deadline = Instant::now() + self.inner.busy_timeout;
        let mut connection = loop {
            match self.inner.writer.acquire().await.map_err(self.failed(OPERATION)) {
                // SQLite does not wait by itself while another process switches the mode.
                Err(error) if error.kind() == StoreErrorKind::Contention && Instant::now() < deadline => {
                    sleep(Duration::from_millis(1)).await;
                }
                connected => break connected?,
            }
        };
        let mode: String =
            query_scalar("PRAGMA journal_mode").fetch_one(&mut *connection).await.map_err(self.failed(OPERATION))?;
        if mode != "wal" {
            let message =
                format!("it stays in journal mode `{mode}` and needs write-ahead mode; keep it on a local disk");
            return Err(StoreError::new(StoreErrorKind::Config, OPERATION, message).at(&*self.inner.info.address));
        }
        Ok(())
    }

    pub(crate) fn sql(&self) -> &Sql {
        &self.inner.sql
    }

    pub(crate) fn lease_clock(&self) -> &LeaseClock {
        &self.inner.lease_clock
    }

    pub(crate) async fn begin(&self, operation: &'static str) -> Result<SqliteTransaction<'static>, StoreError> {
        begin_immediate(&self.inner.writer).await.map_err(self.failed(operation))
    }

    pub(crate) async fn reader(&self, operation: &'static str) -> Result<PoolConnection<Sqlite>, StoreError> {
        self.inner.readers.acquire().await.map_err(self.failed(operation))
    }

    pub(crate) fn failed(&self, operation: &'static str) -> impl Fn(sqlx::Error) -> StoreError + '_ {
        move |error| store_error(operation, &self.inner.info.address, error)
    }

    pub(crate) fn at(&self, error: StoreError) -> StoreError {
        error.at(&*self.inner.info.address)
    }
}

/// Fails early, and with the name of the place, where SQLite would only say that it cannot open the file.
fn check_place(file: &Path, address: &str) -> Result<(), StoreError> {
    let refuse = |message: String| {
        Err(StoreError::new(StoreErrorKind::Config, operation::CONNECT, message).at(address.to_owned()))
    };
    if file.is_dir() {
        return refuse("it is a directory; name a file".to_owned());
    }
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
            refuse(format!("there is no directory `{}`; create it first", parent.display()))
        }
        _ => Ok(()),
    }
}

/// Creates a missing file for its owner alone, since the rows hold what not everybody on the machine may read. SQLite gives the
/// write-ahead log and the shared memory beside it the same permissions. Where this fails, SQLite says why.
fn create(file: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(file));
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("info", &self.inner.info).finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn info(&self) -> &StoreInfo {
        &self.inner.info
    }

    fn insert<'a>(&self, rows: &'a [NewRow]) -> Vec<Statement<'a>> {
        self.inner.inserts.statements(rows)
    }

    fn identify_sql(&self, seqs: &[i64]) -> Option<String> {
        Some(order::identify_sql(self.sql(), seqs))
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        let failed = self.failed(operation::MIGRATE);
        let mut tx = self.begin(operation::MIGRATE).await?;
        migrate::migrate(&mut tx, &self.inner.table, self.sql()).await.map_err(&failed)?.map_err(|e| self.at(e))?;
        tx.commit().await.map_err(failed)
    }

    fn migration_sql(&self) -> String {
        migrate::script(&self.inner.table)
    }

    async fn check(&self) -> Result<(), StoreError> {
        let mut connection = self.reader(operation::CHECK).await?;
        match migrate::check(&mut connection, &self.inner.table, self.sql())
            .await
            .map_err(self.failed(operation::CHECK))
        {
            Err(error) if error.kind() == StoreErrorKind::Schema => {
                let missing = migrate::missing(&self.inner.table).with_source(error);
                Err(self.at(missing))
            }
            checked => checked?.map_err(|error| self.at(error)),
        }
    }

    async fn join(&self, node: &NodeId, mode: Mode, lease: Duration) -> Result<(), StoreError> {
        let failed = self.failed(operation::JOIN);
        let mut tx = self.begin(operation::JOIN).await?;
        if let Some(error) =
            ownership::check_mode(&mut tx, self.sql(), self.lease_clock(), mode).await.map_err(&failed)?
        {
            return Err(self.at(error));
        }
        ownership::join(&mut tx, self.sql(), node, mode, lease).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)
    }

    async fn acquire(&self, node: &NodeId) -> Result<Acquired, StoreError> {
        let failed = self.failed(operation::ACQUIRE);
        let mut connection = self.reader(operation::ACQUIRE).await?;
        if let Some(answer) = ownership::probe(&mut connection, self.sql(), node).await.map_err(&failed)? {
            return Ok(answer);
        }
        drop(connection);
        let mut tx = self.begin(operation::ACQUIRE).await?;
        let acquired = ownership::acquire(&mut tx, self.sql(), self.lease_clock(), node).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(acquired)
    }

    async fn share(&self, node: &NodeId, give: &Epochs) -> Result<Share, StoreError> {
        let failed = self.failed(operation::SHARE);
        let mut connection = self.reader(operation::SHARE).await?;
        if let Some(answer) = share::probe(&mut connection, self.sql(), node, give).await.map_err(&failed)? {
            return Ok(answer);
        }
        drop(connection);
        let mut tx = self.begin(operation::SHARE).await?;
        let shared = share::share(&mut tx, self.sql(), self.lease_clock(), node, give).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(shared)
    }

    async fn renew(&self, node: &NodeId, lease: Duration, last: Option<LeaseMark>) -> Result<Renewal, StoreError> {
        let failed = self.failed(operation::RENEW);
        let mut tx = self.begin(operation::RENEW).await?;
        let renewed = ownership::renew(&mut tx, self.sql(), node, lease, last).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(renewed)
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        let failed = self.failed(operation::LEAVE);
        let mut tx = self.begin(operation::LEAVE).await?;
        ownership::leave(&mut tx, self.sql(), node).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)
    }

    async fn evict(&self, seen: &NodeStatus) -> Result<bool, StoreError> {
        let failed = self.failed(operation::EVICT);
        let mut tx = self.begin(operation::EVICT).await?;
        let evicted = ownership::evict(&mut tx, self.sql(), seen).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(evicted)
    }

    async fn fetch(&self, fetch: &Fetch) -> Result<Fetched, StoreError> {
        let mut connection = self.reader(operation::FETCH).await?;
        fetch::fetch(&mut connection, self.sql(), None, fetch).await.map_err(self.failed(operation::FETCH))
    }

    async fn claim(&self, node: &NodeId, fetch: &Fetch) -> Result<Fetched, StoreError> {
        let failed = self.failed(operation::CLAIM);
        let mut connection = self.reader(operation::CLAIM).await?;
        if let Some(nothing) = claim::probe(&mut connection, self.sql(), node, fetch).await.map_err(&failed)? {
            return Ok(nothing);
        }
        drop(connection);
        let mut tx = self.begin(operation::CLAIM).await?;
        let claimed = claim::claim(&mut tx, self.sql(), node, fetch).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(claimed)
    }

    async fn release(&self, node: &NodeId, rows: &[RowId]) -> Result<(), StoreError> {
        let failed = self.failed(operation::RELEASE);
        let mut tx = self.begin(operation::RELEASE).await?;
        claim::release(&mut tx, self.sql(), node, rows).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)
    }

    async fn reclaim(&self, node: &NodeId, thorough: bool) -> Result<Reclaimed, StoreError> {
        let failed = self.failed(operation::RECLAIM);
        let mut connection = self.reader(operation::RECLAIM).await?;
        if let Some(answer) = reclaim::probe(&mut connection, self.sql(), node, thorough).await.map_err(&failed)? {
            return Ok(answer);
        }
        drop(connection);
        let mut tx = self.begin(operation::RECLAIM).await?;
        let reclaimed =
            reclaim::reclaim(&mut tx, self.sql(), self.lease_clock(), node, thorough).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(reclaimed)
    }

    async fn assign_partitions(&self, rows: &[(RowId, u8)]) -> Result<(), StoreError> {
        let failed = self.failed(operation::ASSIGN_PARTITIONS);
        let mut tx = self.begin(operation::ASSIGN_PARTITIONS).await?;
        order::assign_partitions(&mut tx, self.sql(), rows).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)
    }

    async fn promote_due(&self, rows: &[RowId]) -> Result<(), StoreError> {
        let failed = self.failed(operation::PROMOTE_DUE);
        let mut tx = self.begin(operation::PROMOTE_DUE).await?;
        order::promote_due(&mut tx, self.sql(), rows).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)
    }

    async fn identify(&self, seqs: &[i64]) -> Result<Vec<RowId>, StoreError> {
        let mut connection = self.reader(operation::IDENTIFY).await?;
        order::identify(&mut connection, self.sql(), seqs).await.map_err(self.failed(operation::IDENTIFY))
    }

    /// One connection writes at a time, so events are committed in the order of their `seq`: what is not visible below the
    /// highest one never will be.
    async fn writers(&self) -> Result<Writers, StoreError> {
        let mut connection = self.reader(operation::WRITERS).await?;
        let highest = query_scalar(AssertSqlSafe(Arc::clone(&self.sql().written))).fetch_one(&mut *connection).await;
        Ok(Writers {
            highest: highest.map_err(self.failed(operation::WRITERS))?,
            open: Some(Vec::new()),
            prepared: Vec::new(),
        })
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        let mut connection = self.reader(operation::NOW).await?;
        let now = query_scalar(AssertSqlSafe(Arc::clone(&self.sql().now))).fetch_one(&mut *connection).await;
        Ok(Timestamp::from_micros(now.map_err(self.failed(operation::NOW))?))
    }

    async fn begin_attempt(&self, node: &NodeId, fence: Fence, attempt: &BegunAttempt) -> Result<bool, StoreError> {
        let failed = self.failed(operation::BEGIN_ATTEMPT);
        let mut tx = self.begin(operation::BEGIN_ATTEMPT).await?;
        let begun = settle::begin_attempt(&mut tx, self.sql(), node, fence, attempt).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(begun)
    }

    async fn settle(&self, node: &NodeId, fence: Fence, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError> {
        let failed = self.failed(operation::SETTLE);
        let mut tx = self.begin(operation::SETTLE).await?;
        let refused = settle::settle(&mut tx, self.sql(), node, fence, verdicts).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(refused)
    }

    async fn close(&self) {
        // A transaction that the service still holds keeps its connection open; the others close at once.
        let closed = join(self.inner.writer.close(), self.inner.readers.close());
        let _ = timeout(self.inner.busy_timeout, closed).await;
    }
}
