use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::ownership::{Acquired, Epochs, Fence, LeaseMark, NodeId, NodeMode, Rebalanced, Reclaimed, Renewal};
use pillarbox_core::row::Verdict;
use pillarbox_core::store::schema::{LOCK_PAUSE, PATIENCE};
use pillarbox_core::store::{
    BegunAttempt, Examine, Fetch, Fetched, Interventions, LeaseClock, NodeFigures, NodeStatus, RowId, Store, StoreInfo,
    TableName, Writers, operation,
};
use pillarbox_core::write::{Action, Bind, Command, Dialect, Lookup, NewRow, Question, Statement};
use pillarbox_sqlx::begin_immediate;
use sqlx::{Executor as _, SqliteConnection, SqlitePool, query_scalar};
use tokio::time::{Instant, sleep, timeout};

use crate::complete::{self, Completions};
use crate::database_file::{self, FileId};
use crate::error::Failure;
use crate::insert::Inserts;
use crate::log_files::{Fate, LogFiles};
use crate::sql::Sql;
use crate::{
    SqliteOptions, admin, claim, clock, database, fetch, identity, migrate, order, ownership, rebalance, reclaim,
    settle,
};

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
    completions: Completions,
    writer: SqlitePool,
    readers: SqlitePool,
    busy_timeout: Duration,
    lease_clock: LeaseClock,
    file: PathBuf,
    /// The file that the write connection has opened.
    opened: OnceLock<FileId>,
    log_files: Arc<LogFiles>,
    /// Set once the connections may not be closed any more, since the last one would write an old log over the file.
    stays_open: OnceLock<()>,
    options: SqliteOptions,
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
        database_file::check(file)?;
        database_file::create(file);
        let store = Self::lazy(file, table, options, database::READERS);
        if !store.is_of_others().await? {
            store.connect().await?;
        }
        Ok(store)
    }

    /// A store that connects when it is first asked.
    fn lazy(file: &Path, table: TableName, options: &SqliteOptions, readers: u32) -> Self {
        let log_files = Arc::new(LogFiles::of(file));
        Self {
            inner: Arc::new(Inner {
                info: StoreInfo::new(Dialect::SQLITE, file.display().to_string(), table.to_string()),
                sql: Sql::new(&table),
                inserts: Inserts::new(&table),
                completions: Completions::new(&table),
                table,
                writer: database::writer(file, options, Arc::clone(&log_files)),
                readers: database::readers(file, options, readers),
                busy_timeout: options.busy_timeout,
                lease_clock: LeaseClock::default(),
                file: file.to_owned(),
                opened: OnceLock::new(),
                log_files,
                stays_open: OnceLock::new(),
                options: options.clone(),
            }),
        }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.inner.file
    }

    pub(crate) fn table(&self) -> &TableName {
        &self.inner.table
    }

    /// True if the file is a database that has no outbox and is not in write-ahead mode. Its name may be mistyped, so it is left in the mode
    /// that its own programs have chosen, until tables are to be made in it.
    async fn is_of_others(&self) -> Result<bool, StoreError> {
        const OPERATION: &str = operation::CONNECT;
        if self.inner.options.connect_is_given {
            return Ok(false);
        }
        let table = self.inner.table.to_string();
        let found = database::look(&self.inner.file, &self.inner.options, &table).await;
        let found = found.map_err(self.failed(OPERATION))?;
        self.check_encoding(&found.encoding)?;
        Ok(found.has_tables && !found.has_outbox && found.journal_mode != "wal")
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
            let problem =
                format!("it stays in journal mode `{mode}` and needs write-ahead mode; keep it on a local disk");
            return Err(self.failed(OPERATION)(Failure::Refused(StoreErrorKind::Config, problem)));
        }
        let encoding: String =
            query_scalar("PRAGMA encoding").fetch_one(&mut *connection).await.map_err(self.failed(OPERATION))?;
        self.check_encoding(&encoding)?;
        if let Ok(opened) = FileId::at(&self.inner.file) {
            let _ = self.inner.opened.set(opened);
        }
        Ok(())
    }

    /// The statements compare the bytes of texts in the hexadecimal form that `hex()` gives them.
    fn check_encoding(&self, encoding: &str) -> Result<(), StoreError> {
        if encoding == "UTF-8" {
            return Ok(());
        }
        let problem = format!(
            "it keeps text in {encoding} and needs UTF-8; copy it into a new file, `sqlite3 old.db .dump | sqlite3 new.db`, and set \
             `user_version` and `application_id` there as they were"
        );
        Err(self.failed(operation::CONNECT)(Failure::Refused(StoreErrorKind::Config, problem)))
    }

    /// Fails if the file was moved, removed or replaced since it was opened: the write connection would go on in a file that no other program
    /// opens any more, and in write-ahead mode SQLite does not notice.
    fn check_file(&self, operation: &'static str) -> Result<(), StoreError> {
        if self.inner.opened.get().is_none_or(|opened| opened.is_at(&self.inner.file)) {
            return Ok(());
        }
        let problem =
            "the file was moved, removed or replaced while it was open; stop all its programs and start them again";
        Err(self.failed(operation)(Failure::Refused(StoreErrorKind::Unavailable, problem.to_owned())))
    }

    /// Fails if the write-ahead log was removed or replaced since the write connection was opened.
    async fn check_log_files(&self, operation: &'static str) -> Result<(), StoreError> {
        let mut connection = self.inner.writer.acquire().await.map_err(self.failed(operation))?;
        let Some(path) = self.save_log(Some(&mut connection)).await else { return Ok(()) };
        let problem = format!(
            "{} was removed or replaced while it was open: other programs do not see what this one has committed since the last \
             checkpoint, nor does this one see theirs; end this process and start it again",
            path.display()
        );
        Err(self.failed(operation)(Failure::Refused(StoreErrorKind::Unexpected, problem)))
    }

    /// Saves what can be saved if the write-ahead log was removed or replaced, and returns which file was.
    async fn save_log(&self, writer: Option<&mut SqliteConnection>) -> Option<PathBuf> {
        let fate = self.inner.log_files.fate();
        let pragma = match &fate {
            Fate::Kept => return None,
            // Nobody else has written since, so all that is in the removed log belongs into the file.
            Fate::Removed(_) => "PRAGMA wal_checkpoint(TRUNCATE)",
            // The old log must not be written over the changes of others since then, neither by a checkpoint nor by the last
            // connection to close.
            Fate::Replaced(_) => {
                self.stay_open();
                "PRAGMA wal_autocheckpoint = 0"
            }
        };
        if let Some(writer) = writer {
            // The caller fails in any case.
            let _ = writer.execute(pragma).await;
        }
        match fate {
            Fate::Removed(path) => {
                self.inner.log_files.note_saved();
                Some(path)
            }
            Fate::Replaced(path) => Some(path),
            Fate::Kept => None,
        }
    }

    /// Keeps the connections open until the process ends.
    fn stay_open(&self) {
        self.inner.stays_open.get_or_init(|| {
            let pools = (self.inner.writer.clone(), self.inner.readers.clone());
            let keep = move || {
                let _pools = pools;
                loop {
                    std::thread::park();
                }
            };
            // Without a thread they are closed with the store.
            let _ = std::thread::Builder::new().name("pillarbox-sqlite-open".to_owned()).spawn(keep);
        });
    }

    /// Runs `work` on a connection that reads.
    pub(crate) async fn read<T, E: Into<Failure>>(
        &self,
        operation: &'static str,
        work: impl AsyncFnOnce(&mut Session<'_>) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        let mut connection = self.inner.readers.acquire().await.map_err(self.failed(operation))?;
        work(&mut self.inner.session(&mut connection)).await.map_err(self.failed(operation))
    }

    /// Runs `work` in a transaction that holds the write lock from its beginning, and commits it.
    pub(crate) async fn write<T, E: Into<Failure>>(
        &self,
        operation: &'static str,
        work: impl AsyncFnOnce(&mut Session<'_>) -> Result<T, E>,
    ) -> Result<T, StoreError> {
        let mut tx = begin_immediate(&self.inner.writer).await.map_err(self.failed(operation))?;
        let done = work(&mut self.inner.session(&mut tx)).await.map_err(self.failed(operation))?;
        tx.commit().await.map_err(self.failed(operation))?;
        Ok(done)
    }

    /// As [`write`](Self::write), unless `probe` finds the answer without writing anything.
    async fn write_unless<T>(
        &self,
        operation: &'static str,
        probe: impl AsyncFnOnce(&mut Session<'_>) -> sqlx::Result<Option<T>>,
        work: impl AsyncFnOnce(&mut Session<'_>) -> sqlx::Result<T>,
    ) -> Result<T, StoreError> {
        match self.read(operation, probe).await? {
            Some(answer) => Ok(answer),
            None => self.write(operation, work).await,
        }
    }

    fn failed<E: Into<Failure>>(&self, operation: &'static str) -> impl Fn(E) -> StoreError + '_ {
        move |error| error.into().during(operation, &self.inner.info.address)
    }
}

impl Inner {
    fn session<'s>(&'s self, connection: &'s mut SqliteConnection) -> Session<'s> {
        Session { connection, sql: &self.sql, table: &self.table, lease_clock: &self.lease_clock }
    }
}

/// A connection for one call, and the parts of the store that its statements need.
pub(crate) struct Session<'s> {
    pub(crate) connection: &'s mut SqliteConnection,
    pub(crate) sql: &'s Sql,
    pub(crate) table: &'s TableName,
    pub(crate) lease_clock: &'s LeaseClock,
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

    fn insert_unique<'a>(&self, row: &'a NewRow, _ended: Option<i64>) -> Vec<Statement<'a>> {
        self.inner.inserts.unique(row)
    }

    fn complete<'a>(&self, node: &'a NodeId, fence: Fence, verdict: &'a Verdict) -> Command<'a> {
        self.inner.completions.command(node, fence, verdict)
    }

    fn mark_transaction(&self) -> Option<Statement<'static>> {
        Some(complete::mark())
    }

    fn receive<'a>(&self, consumer: &'a str, message_id: &'a str) -> Command<'a> {
        let binds = vec![Bind::Text(Some(consumer)), Bind::Text(Some(message_id))];
        let statements = vec![Statement { sql: Arc::clone(&self.inner.sql.receive), binds, reusable: true }];
        Command { action: Action::Receive { consumer, message_id }, statements }
    }

    fn has_one_writer(&self) -> bool {
        true
    }

    fn identify_sql(&self, seqs: &[i64]) -> Option<String> {
        Some(identity::identify_sql(&self.inner.sql, seqs))
    }

    fn lookup<'a>(&self, question: Question<'a>) -> Lookup<'a> {
        identity::lookup(&self.inner.sql, question)
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        if self.inner.opened.get().is_none() {
            self.connect().await?;
        }
        if self.read(operation::MIGRATE, migrate::is_up_to_date).await? {
            return Ok(());
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.write(operation::MIGRATE, migrate::migrate).await {
                Err(error) if error.kind() == StoreErrorKind::Contention && Instant::now() < deadline => {
                    tracing::warn!(table = %self.inner.table, %error, "a migration waits for its turn; trying again");
                    sleep(LOCK_PAUSE).await;
                }
                migrated => return migrated,
            }
        }
    }

    fn migration_sql(&self) -> String {
        migrate::script(&self.inner.table)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.read(operation::CHECK, migrate::check).await?.map_err(self.failed(operation::CHECK))
    }

    async fn join(&self, node: &NodeId, mode: NodeMode, lease: Duration) -> Result<(), StoreError> {
        if self.inner.opened.get().is_none() {
            self.connect().await?;
        }
        self.check_file(operation::JOIN)?;
        self.check_log_files(operation::JOIN).await?;
        self.write(operation::JOIN, async |session| ownership::join(session, node, mode, lease).await).await
    }

    async fn acquire(&self, node: &NodeId) -> Result<Acquired, StoreError> {
        let probe = async |session: &mut Session<'_>| ownership::probe(session, node).await;
        self.write_unless(operation::ACQUIRE, probe, async |session| ownership::acquire(session, node).await).await
    }

    async fn rebalance(&self, node: &NodeId, give: &Epochs) -> Result<Rebalanced, StoreError> {
        let probe = async |session: &mut Session<'_>| rebalance::probe(session, node, give).await;
        self.write_unless(operation::REBALANCE, probe, async |session| rebalance::rebalance(session, node, give).await)
            .await
    }

    async fn renew(
        &self,
        node: &NodeId,
        lease: Duration,
        last: Option<LeaseMark>,
        figures: Option<&NodeFigures>,
    ) -> Result<Renewal, StoreError> {
        self.check_file(operation::RENEW)?;
        self.check_log_files(operation::RENEW).await?;
        self.write(operation::RENEW, async |session| ownership::renew(session, node, lease, last, figures).await).await
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        self.write(operation::LEAVE, async |session| ownership::leave(session, node).await).await
    }

    async fn evict(&self, seen: &NodeStatus) -> Result<bool, StoreError> {
        self.write(operation::EVICT, async |session| ownership::evict(session, seen).await).await
    }

    async fn fetch(&self, fetch: &Fetch) -> Result<Fetched, StoreError> {
        self.read(operation::FETCH, async |session| fetch::fetch(session, None, fetch).await).await
    }

    async fn claim(&self, node: &NodeId, fetch: &Fetch) -> Result<Fetched, StoreError> {
        let probe = async |session: &mut Session<'_>| claim::probe(session, node, fetch).await;
        self.write_unless(operation::CLAIM, probe, async |session| claim::claim(session, node, fetch).await).await
    }

    async fn release(&self, node: &NodeId, rows: &[RowId]) -> Result<(), StoreError> {
        self.write(operation::RELEASE, async |session| claim::release(session, node, rows).await).await
    }

    async fn reclaim(&self, node: &NodeId, thorough: bool) -> Result<Reclaimed, StoreError> {
        let probe = async |session: &mut Session<'_>| reclaim::probe(session, node, thorough).await;
        let reclaim = async |session: &mut Session<'_>| reclaim::reclaim(session, node, thorough).await;
        self.write_unless(operation::RECLAIM, probe, reclaim).await
    }

    async fn assign_partitions(&self, rows: &[(RowId, u8)]) -> Result<(), StoreError> {
        self.write(operation::ASSIGN_PARTITIONS, async |session| order::assign_partitions(session, rows).await).await
    }

    async fn promote_due(&self, rows: &[RowId]) -> Result<(), StoreError> {
        self.write(operation::PROMOTE_DUE, async |session| order::promote_due(session, rows).await).await
    }

    async fn identify(&self, seqs: &[i64]) -> Result<Vec<RowId>, StoreError> {
        self.read(operation::IDENTIFY, async |session| identity::identify(session, seqs).await).await
    }

    async fn writers(&self) -> Result<Writers, StoreError> {
        self.read(operation::WRITERS, order::writers).await
    }

    async fn interventions(&self) -> Result<Interventions, StoreError> {
        self.read(operation::INTERVENTIONS, admin::interventions).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.read(operation::NOW, clock::now).await
    }

    async fn begin_attempt(&self, node: &NodeId, fence: Fence, attempt: &BegunAttempt) -> Result<bool, StoreError> {
        let begin = async |session: &mut Session<'_>| settle::begin_attempt(session, node, fence, attempt).await;
        self.write(operation::BEGIN_ATTEMPT, begin).await
    }

    async fn settle(&self, node: &NodeId, fence: Fence, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError> {
        self.write(operation::SETTLE, async |session| settle::settle(session, node, fence, verdicts).await).await
    }

    fn examiner(&self, limit: Duration) -> Option<Arc<dyn Examine>> {
        let options = self.inner.options.clone().busy_timeout(limit);
        Some(Arc::new(Self::lazy(&self.inner.file, self.inner.table.clone(), &options, 1)))
    }

    async fn close(&self) {
        let mut writer = self.inner.writer.try_acquire();
        self.save_log(writer.as_deref_mut()).await;
        drop(writer);
        if self.inner.stays_open.get().is_some() {
            return;
        }
        // A transaction that the service still holds keeps its connection open; the others close at once.
        let closed = join(self.inner.writer.close(), self.inner.readers.close());
        let _ = timeout(self.inner.busy_timeout, closed).await;
    }
}
