use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::ownership::{Acquired, Epochs, Fence, LeaseMark, NodeId, NodeMode, Rebalanced, Reclaimed, Renewal};
use pillarbox_core::row::Verdict;
use pillarbox_core::store::operation;
use pillarbox_core::store::{
    BegunAttempt, Fetch, Fetched, History, Interventions, Listener, NodeFigures, NodeStatus, RowId, Store, StoreInfo,
    WakeUps, Writers,
};
use pillarbox_core::write::{Action, Command, Lookup, NewRow, Question, Statement};
use tokio::sync::watch;

use super::MemoryStore;
use super::tables::State;

impl MemoryStore {
    /// Fails if this handle is closed.
    fn check_open(&self, operation: &'static str) -> Result<(), StoreError> {
        if !self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let message = "the store has been closed; take another handle with `reopen`";
        Err(StoreError::new(StoreErrorKind::Unexpected, operation, message).at(&*self.info.address))
    }

    /// The tables, for one call on a handle that is not closed.
    pub(super) fn open(&self, operation: &'static str) -> Result<MutexGuard<'_, State>, StoreError> {
        self.check_open(operation)?;
        Ok(self.tables.lock())
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn info(&self) -> &StoreInfo {
        &self.info
    }

    /// None: a [`MemoryTransaction`](super::MemoryTransaction) takes the rows as they are.
    fn insert<'a>(&self, _rows: &'a [NewRow]) -> Vec<Statement<'a>> {
        Vec::new()
    }

    /// None, as for [`insert`](Self::insert).
    fn insert_unique<'a>(&self, _row: &'a NewRow, _ended: Option<i64>) -> Vec<Statement<'a>> {
        Vec::new()
    }

    fn complete<'a>(&self, node: &'a NodeId, fence: Fence, verdict: &'a Verdict) -> Command<'a> {
        Command { action: Action::Complete { node, fence, verdict }, statements: Vec::new() }
    }

    fn receive<'a>(&self, consumer: &'a str, message_id: &'a str) -> Command<'a> {
        Command { action: Action::Receive { consumer, message_id }, statements: Vec::new() }
    }

    /// The tables are there from the start.
    async fn migrate(&self) -> Result<(), StoreError> {
        self.check_open(operation::MIGRATE)
    }

    /// Empty: there is no SQL.
    fn migration_sql(&self) -> String {
        String::new()
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.check_open(operation::CHECK)
    }

    async fn join(&self, node: &NodeId, mode: NodeMode, lease: Duration) -> Result<(), StoreError> {
        let mut state = self.open(operation::JOIN)?;
        let joined = state.nodes.join(node, mode, lease, self.tables.now(), &self.lease_clock);
        joined.map_err(|error| error.at(&*self.info.address))
    }

    async fn acquire(&self, node: &NodeId) -> Result<Acquired, StoreError> {
        Ok(self.open(operation::ACQUIRE)?.nodes.acquire(node, self.tables.now(), &self.lease_clock))
    }

    async fn rebalance(&self, node: &NodeId, give: &Epochs) -> Result<Rebalanced, StoreError> {
        Ok(self.open(operation::REBALANCE)?.nodes.rebalance(node, give, self.tables.now(), &self.lease_clock))
    }

    async fn renew(
        &self,
        node: &NodeId,
        lease: Duration,
        last: Option<LeaseMark>,
        figures: Option<&NodeFigures>,
    ) -> Result<Renewal, StoreError> {
        Ok(self.open(operation::RENEW)?.nodes.renew(node, lease, last, figures, self.tables.now()))
    }

    fn history(&self) -> History {
        self.tables.history()
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        self.open(operation::LEAVE)?.nodes.leave(node);
        Ok(())
    }

    async fn evict(&self, seen: &NodeStatus) -> Result<bool, StoreError> {
        Ok(self.open(operation::EVICT)?.nodes.evict(&seen.node, seen.expires_at))
    }

    async fn fetch(&self, fetch: &Fetch) -> Result<Fetched, StoreError> {
        Ok(self.open(operation::FETCH)?.fetch(fetch, self.tables.now()))
    }

    async fn claim(&self, node: &NodeId, fetch: &Fetch) -> Result<Fetched, StoreError> {
        Ok(self.open(operation::CLAIM)?.claim(node, fetch, self.tables.now()))
    }

    async fn release(&self, node: &NodeId, rows: &[RowId]) -> Result<(), StoreError> {
        self.open(operation::RELEASE)?.release_held(node, rows);
        Ok(())
    }

    async fn reclaim(&self, node: &NodeId, thorough: bool) -> Result<Reclaimed, StoreError> {
        Ok(self.open(operation::RECLAIM)?.reclaim(node, thorough, self.tables.now(), &self.lease_clock))
    }

    async fn assign_partitions(&self, rows: &[(RowId, u8)]) -> Result<(), StoreError> {
        self.open(operation::ASSIGN_PARTITIONS)?.assign_partitions(rows);
        Ok(())
    }

    async fn promote_due(&self, rows: &[RowId]) -> Result<(), StoreError> {
        self.open(operation::PROMOTE_DUE)?.promote_due(rows, self.tables.now());
        Ok(())
    }

    fn identify_sql(&self, _seqs: &[i64]) -> Option<String> {
        None
    }

    fn lookup<'a>(&self, question: Question<'a>) -> Lookup<'a> {
        Lookup { question, statements: Vec::new() }
    }

    async fn identify(&self, seqs: &[i64]) -> Result<Vec<RowId>, StoreError> {
        Ok(self.open(operation::IDENTIFY)?.identify(seqs))
    }

    async fn writers(&self) -> Result<Writers, StoreError> {
        Ok(self.open(operation::WRITERS)?.writers())
    }

    async fn raise_read_point(&self) -> Result<bool, StoreError> {
        self.open(operation::RAISE_READ_POINT)?.raise_read_point();
        Ok(true)
    }

    async fn interventions(&self) -> Result<Interventions, StoreError> {
        let (state, now) = (self.open(operation::INTERVENTIONS)?, self.tables.now());
        Ok(Interventions { count: state.interventions(), pauses: state.pauses.list(now) })
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.check_open(operation::NOW)?;
        Ok(self.tables.now())
    }

    async fn begin_attempt(&self, node: &NodeId, fence: Fence, attempt: &BegunAttempt) -> Result<bool, StoreError> {
        Ok(self.open(operation::BEGIN_ATTEMPT)?.begin_attempt(node, fence, attempt, self.tables.now()))
    }

    async fn settle(&self, node: &NodeId, fence: Fence, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError> {
        Ok(self.open(operation::SETTLE)?.settle(node, fence, verdicts, self.tables.now()))
    }

    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        Some(self)
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

#[async_trait]
impl WakeUps for MemoryStore {
    async fn notify(&self) -> Result<(), StoreError> {
        self.check_open(operation::WAKE)?;
        self.tables.notifications.send_modify(|times| *times += 1);
        Ok(())
    }

    async fn listen(&self) -> Result<Box<dyn Listener>, StoreError> {
        self.check_open(operation::LISTEN)?;
        Ok(Box::new(Ear(self.tables.notifications.subscribe())))
    }
}

/// Receives the wake-ups of a store.
#[derive(Debug)]
struct Ear(watch::Receiver<u64>);

#[async_trait]
impl Listener for Ear {
    async fn notified(&mut self) -> Result<(), StoreError> {
        let gone = |_| StoreError::new(StoreErrorKind::Unavailable, operation::LISTEN, "the store is gone");
        self.0.changed().await.map_err(gone)
    }
}
