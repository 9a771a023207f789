use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::error::StoreError;
use pillarbox_core::ownership::{Acquired, Fence, Mode, NodeId, Partitions, Reclaimed, Renewal, Share};
use pillarbox_core::settle::Verdict;
use pillarbox_core::store::{
    Backlog, BegunAttempt, Blocked, Counts, DeadEvent, DeadFilter, Fetch, Fetched, NodeStatus, PartitionBacklog, Purge,
    Purged, Record, Store, StoreInfo, TableName, Upkeep, Writers,
};
use pillarbox_core::write::{Dialect, NewRow, Statement};

use crate::session::Sessions;
use crate::sql::Sql;
use crate::{
    MysqlOptions, claim, dead, fetch, insert, ownership, place, purge, reclaim, schema, settle, share, upkeep,
};

/// An outbox in MySQL (8.0.13 or later) or MariaDB (10.6 or later). Cheap to clone; all clones share their connections.
#[derive(Debug, Clone)]
pub struct MysqlStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) sessions: Sessions,
    pub(crate) table: TableName,
    pub(crate) sql: Sql,
    /// Whether the server is MariaDB, which returns columns from an insert.
    mariadb: bool,
    info: StoreInfo,
}

impl MysqlStore {
    /// Connects with the default options. See [`MysqlOptions::parse`] for what the URL can say.
    ///
    /// # Errors
    /// When the URL is malformed, or the database cannot be reached or refuses. The error says where the database is and
    /// never contains the password.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        MysqlOptions::parse(url)?.connect().await
    }

    pub(crate) fn new(sessions: Sessions, table: TableName, mariadb: bool) -> Self {
        let info = StoreInfo::new(Dialect::MYSQL, sessions.address(), table.to_string());
        Self { inner: Arc::new(Inner { sql: Sql::new(&table), sessions, table, mariadb, info }) }
    }
}

#[cfg(test)]
impl MysqlStore {
    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// The store as it would be on MySQL.
    pub(crate) fn without_returning(self) -> Option<Self> {
        let inner = Arc::into_inner(self.inner)?;
        Some(Self { inner: Arc::new(Inner { mariadb: false, ..inner }) })
    }
}

#[async_trait]
impl Store for MysqlStore {
    fn info(&self) -> &StoreInfo {
        &self.inner.info
    }

    fn insert<'a>(&self, rows: &'a [NewRow]) -> Vec<Statement<'a>> {
        insert::statements(&self.inner.sql, self.inner.mariadb, rows)
    }

    async fn migrate(&self) -> Result<(), StoreError> {
        self.inner.sessions.patient_call("migrate the tables", schema::migrate(&self.inner)).await
    }

    fn migration_sql(&self) -> String {
        schema::script(&self.inner.table, 0)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.sessions.call("check the tables", || schema::check(&self.inner)).await
    }

    async fn join(&self, node: &NodeId, mode: Mode, lease: Duration) -> Result<(), StoreError> {
        self.inner.sessions.call("register the node", || ownership::join(&self.inner, node, mode, lease)).await
    }

    async fn acquire(&self, node: &NodeId) -> Result<Acquired, StoreError> {
        self.inner.sessions.call("acquire ownership", || ownership::acquire(&self.inner, node)).await
    }

    async fn share(&self, node: &NodeId, give: Partitions) -> Result<Share, StoreError> {
        self.inner.sessions.call("share the partitions", || share::share(&self.inner, node, give)).await
    }

    async fn renew(&self, node: &NodeId, lease: Duration) -> Result<Renewal, StoreError> {
        self.inner.sessions.call("renew the lease", || ownership::renew(&self.inner, node, lease)).await
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        self.inner.sessions.call("unregister the node", || ownership::leave(&self.inner, node)).await
    }

    async fn fetch(&self, fetch: &Fetch) -> Result<Fetched, StoreError> {
        self.inner.sessions.call("fetch events", || fetch::fetch(&self.inner, fetch)).await
    }

    async fn claim(&self, node: &NodeId, fetch: &Fetch) -> Result<Fetched, StoreError> {
        self.inner.sessions.call("claim events", || claim::claim(&self.inner, node, fetch)).await
    }

    async fn release(&self, node: &NodeId, seqs: &[i64]) -> Result<(), StoreError> {
        self.inner.sessions.call("release events", || claim::release(&self.inner, node, seqs)).await
    }

    async fn reclaim(&self, node: &NodeId, thorough: bool) -> Result<Reclaimed, StoreError> {
        self.inner.sessions.call("reclaim events", || reclaim::reclaim(&self.inner, node, thorough)).await
    }

    async fn stamp(&self, rows: &[(i64, u8)]) -> Result<(), StoreError> {
        self.inner.sessions.call("stamp partitions", || place::stamp(&self.inner, rows)).await
    }

    async fn ripen(&self, seqs: &[i64]) -> Result<(), StoreError> {
        self.inner.sessions.call("put due events in their place", || place::ripen(&self.inner, seqs)).await
    }

    async fn writers(&self) -> Result<Writers, StoreError> {
        self.inner.sessions.call("look at the writers", || place::writers(&self.inner)).await
    }

    async fn begin_attempt(&self, node: &NodeId, fence: Fence, attempt: &BegunAttempt) -> Result<bool, StoreError> {
        let begin = || settle::begin_attempt(&self.inner, node, fence, attempt);
        self.inner.sessions.call("announce an attempt", begin).await
    }

    async fn settle(&self, node: &NodeId, fence: Fence, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError> {
        self.inner.sessions.call("settle events", || settle::settle(&self.inner, node, fence, verdicts)).await
    }

    fn settles_in_parallel(&self) -> bool {
        true
    }

    async fn close(&self) {
        self.inner.sessions.close();
    }
}

#[async_trait]
impl Upkeep for MysqlStore {
    async fn counts(&self) -> Result<Counts, StoreError> {
        self.inner.sessions.call("count events", || upkeep::counts(&self.inner)).await
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        self.inner.sessions.call("count the backlog", || upkeep::backlog(&self.inner)).await
    }

    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        self.inner.sessions.call("list the nodes", || upkeep::nodes(&self.inner)).await
    }

    async fn partitions(&self) -> Result<PartitionBacklog, StoreError> {
        self.inner.sessions.call("look at the partitions", || upkeep::partitions(&self.inner)).await
    }

    async fn blocked(&self, above: i64, limit: usize) -> Result<Vec<Blocked>, StoreError> {
        self.inner.sessions.call("list blocked keys", || upkeep::blocked(&self.inner, above, limit)).await
    }

    async fn records(&self, event_id: &str) -> Result<Vec<Record>, StoreError> {
        self.inner.sessions.call("read an event", || upkeep::records(&self.inner, event_id)).await
    }

    async fn dead(&self, filter: &DeadFilter, above: i64, limit: usize) -> Result<Vec<DeadEvent>, StoreError> {
        self.inner.sessions.call("list DEAD events", || dead::list(&self.inner, filter, above, limit)).await
    }

    async fn count_dead(&self, filter: &DeadFilter) -> Result<u64, StoreError> {
        self.inner.sessions.call("count DEAD events", || dead::number(&self.inner, filter)).await
    }

    async fn replay(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        self.inner.sessions.call("replay DEAD events", || dead::replay(&self.inner, seqs)).await
    }

    async fn discard(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        self.inner.sessions.call("discard DEAD events", || dead::discard(&self.inner, seqs)).await
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        self.inner.sessions.call("purge events", || purge::purge(&self.inner, purge)).await
    }
}
