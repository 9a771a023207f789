use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::StoreError;
use pillarbox_core::ownership::{Acquired, Epochs, Fence, LeaseMark, NodeId, NodeMode, Rebalanced, Reclaimed, Renewal};
use pillarbox_core::row::Verdict;
use pillarbox_core::store::operation;
use pillarbox_core::store::schema::PATIENCE;
use pillarbox_core::store::{
    BegunAttempt, Division, Examine, Fetch, Fetched, History, Interventions, LeaseClock, NodeFigures, NodeStatus,
    RowId, Store, StoreInfo, TableName, WakeUps, Writers,
};
use pillarbox_core::write::{Command, Dialect, Lookup, NewRow, Question, Statement};

use crate::session::Sessions;
use crate::sql::Sql;
use crate::{
    PostgresOptions, admin, claim, clock, complete, fetch, identity, inbox, insert, order, ownership, read_point,
    rebalance, reclaim, rows, schema, settle,
};

/// An outbox in PostgreSQL (12 or later). Cheap to clone; all clones share their connections.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) sessions: Sessions,
    pub(crate) table: TableName,
    pub(crate) sql: Sql,
    pub(crate) durable_settles: bool,
    pub(crate) lease_clock: LeaseClock,
    info: StoreInfo,
}

impl PostgresStore {
    /// Connects with the default options. See [`PostgresOptions::parse`] for the parts of the URL.
    ///
    /// # Errors
    /// When the URL is malformed, or the database cannot be reached or refuses. The error says where the database is and
    /// never contains the password.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        PostgresOptions::parse(url)?.connect().await
    }

    pub(crate) fn new(sessions: Sessions, table: TableName, durable_settles: bool) -> Self {
        let info = StoreInfo::new(Dialect::POSTGRES, sessions.address(), table.to_string());
        Self {
            inner: Arc::new(Inner {
                sql: Sql::new(&table),
                sessions,
                table,
                durable_settles,
                lease_clock: LeaseClock::default(),
                info,
            }),
        }
    }
}

impl PostgresStore {
    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// True if a connection may keep the statements of users' transactions prepared. A pooler may run the next one on another connection.
    fn prepares(&self) -> bool {
        !self.inner.sessions.is_pooled()
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn info(&self) -> &StoreInfo {
        &self.inner.info
    }

    fn insert<'a>(&self, rows: &'a [NewRow]) -> Vec<Statement<'a>> {
        insert::statements(&self.inner.sql, self.prepares(), rows)
    }

    /// One that has ended gives up its key in the same statement.
    fn insert_unique<'a>(&self, row: &'a NewRow, _ended: Option<i64>) -> Vec<Statement<'a>> {
        insert::unique(&self.inner.sql, self.prepares(), row)
    }

    fn complete<'a>(&self, node: &'a NodeId, fence: Fence, verdict: &'a Verdict) -> Command<'a> {
        complete::command(&self.inner.sql, self.prepares(), node, fence, verdict)
    }

    fn receive<'a>(&self, consumer: &'a str, message_id: &'a str) -> Command<'a> {
        inbox::receive(&self.inner.sql, self.prepares(), consumer, message_id)
    }

    fn identify_sql(&self, seqs: &[i64]) -> Option<String> {
        Some(identity::identify_sql(&self.inner.sql, seqs))
    }

    fn lookup<'a>(&self, question: Question<'a>) -> Lookup<'a> {
        identity::lookup(&self.inner.sql, question)
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        let migrate = |until| Box::pin(schema::migrate(&self.inner, PATIENCE, until));
        self.inner.sessions.patient_call(operation::MIGRATE, migrate).await
    }

    fn migration_sql(&self) -> String {
        schema::script(&self.inner.table, 0)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.sessions.call(operation::CHECK, schema::check(&self.inner)).await
    }

    async fn join(&self, node: &NodeId, mode: NodeMode, lease: Duration) -> Result<(), StoreError> {
        self.inner.sessions.call(operation::JOIN, ownership::join(&self.inner, node, mode, lease)).await
    }

    async fn acquire(&self, node: &NodeId) -> Result<Acquired, StoreError> {
        self.inner.sessions.call(operation::ACQUIRE, ownership::acquire(&self.inner, node)).await
    }

    async fn rebalance(&self, node: &NodeId, give: &Epochs) -> Result<Rebalanced, StoreError> {
        self.inner.sessions.call(operation::REBALANCE, rebalance::rebalance(&self.inner, node, give)).await
    }

    async fn renew(
        &self,
        node: &NodeId,
        lease: Duration,
        last: Option<LeaseMark>,
        figures: Option<&NodeFigures>,
    ) -> Result<Renewal, StoreError> {
        self.inner.sessions.call(operation::RENEW, ownership::renew(&self.inner, node, lease, last, figures)).await
    }

    fn history(&self) -> History {
        self.inner.sessions.history()
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        self.inner.sessions.call(operation::LEAVE, ownership::leave(&self.inner, node)).await
    }

    async fn evict(&self, seen: &NodeStatus) -> Result<bool, StoreError> {
        self.inner.sessions.call(operation::EVICT, ownership::evict(&self.inner, seen)).await
    }

    async fn fetch(&self, fetch: &Fetch) -> Result<Fetched, StoreError> {
        self.inner.sessions.call(operation::FETCH, fetch::fetch(&self.inner, fetch)).await
    }

    async fn claim(&self, node: &NodeId, fetch: &Fetch) -> Result<Fetched, StoreError> {
        self.inner.sessions.call(operation::CLAIM, claim::claim(&self.inner, node, fetch)).await
    }

    async fn release(&self, node: &NodeId, rows: &[RowId]) -> Result<(), StoreError> {
        self.inner.sessions.call(operation::RELEASE, claim::release(&self.inner, node, rows)).await
    }

    async fn reclaim(&self, node: &NodeId, thorough: bool) -> Result<Reclaimed, StoreError> {
        self.inner.sessions.call(operation::RECLAIM, reclaim::reclaim(&self.inner, node, thorough)).await
    }

    async fn assign_partitions(&self, rows: &[(RowId, u8)]) -> Result<(), StoreError> {
        self.inner.sessions.call(operation::ASSIGN_PARTITIONS, order::assign_partitions(&self.inner, rows)).await
    }

    async fn promote_due(&self, rows: &[RowId]) -> Result<(), StoreError> {
        self.inner.sessions.call(operation::PROMOTE_DUE, order::promote_due(&self.inner, rows)).await
    }

    async fn identify(&self, seqs: &[i64]) -> Result<Vec<RowId>, StoreError> {
        self.inner.sessions.call(operation::IDENTIFY, identity::identify(&self.inner, seqs)).await
    }

    async fn writers(&self) -> Result<Writers, StoreError> {
        self.inner.sessions.call(operation::WRITERS, order::writers(&self.inner)).await
    }

    async fn raise_read_point(&self) -> Result<bool, StoreError> {
        self.inner.sessions.call(operation::RAISE_READ_POINT, read_point::raise(&self.inner)).await
    }

    async fn interventions(&self) -> Result<Interventions, StoreError> {
        self.inner.sessions.call(operation::INTERVENTIONS, admin::interventions(&self.inner)).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.sessions.call(operation::NOW, clock::now(&self.inner)).await
    }

    async fn begin_attempt(&self, node: &NodeId, fence: Fence, attempt: &BegunAttempt) -> Result<bool, StoreError> {
        let begin = settle::begin_attempt(&self.inner, node, fence, attempt);
        self.inner.sessions.call(operation::BEGIN_ATTEMPT, begin).await
    }

    async fn settle(&self, node: &NodeId, fence: Fence, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError> {
        self.inner.sessions.call(operation::SETTLE, settle::settle(&self.inner, node, fence, verdicts)).await
    }

    /// A pooler hands a connection from one client to the next, so what one listens for nobody would hear.
    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        if self.inner.sessions.is_pooled() { None } else { Some(self) }
    }

    /// No where one call goes along the index and each of two would look for its rows one by one, which is more work.
    fn settles_in_parallel(&self, verdicts: &[Verdict], division: Division) -> bool {
        division == Division::Halves || !rows::are_dense(verdicts.iter().map(|verdict| verdict.row.seq))
    }

    fn examiner(&self, limit: Duration) -> Option<Arc<dyn Examine>> {
        let sessions = self.inner.sessions.for_examination(limit).ok()?;
        let store = Self::new(sessions, self.inner.table.clone(), self.inner.durable_settles);
        Some(Arc::new(store))
    }

    async fn close(&self) {
        self.inner.sessions.close();
    }
}
