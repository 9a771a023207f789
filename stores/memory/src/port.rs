use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::error::{StoreError, StoreErrorKind};
use pillarbox_core::ownership::{Acquired, Epochs, Fence, LeaseMark, Mode, NodeId, Reclaimed, Renewal, Share};
use pillarbox_core::row::Verdict;
use pillarbox_core::store::operation;
use pillarbox_core::store::{
    BegunAttempt, Fetch, Fetched, History, Listener, NodeStatus, RowId, Store, StoreInfo, WakeUps, Writers,
};
use pillarbox_core::write::{NewRow, Statement};
use tokio::sync::watch;

use super::MemoryStore;

impl MemoryStore {
    pub(super) fn open(&self, operation: &'static str) -> Result<(), StoreError> {
        if !self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let message = "the store has been closed; take another handle with `reopen`";
        Err(StoreError::new(StoreErrorKind::Unexpected, operation, message).at(&*self.info.address))
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

    /// The tables are there from the start.
    async fn migrate(&self) -> Result<(), StoreError> {
        self.open(operation::MIGRATE)
    }

    /// Empty: there is no SQL.
    fn migration_sql(&self) -> String {
        String::new()
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.open(operation::CHECK)
    }

    async fn join(&self, node: &NodeId, mode: Mode, lease: Duration) -> Result<(), StoreError> {
        self.open(operation::JOIN)?;
        let now = self.tables.now();
        self.tables
            .lock()
            .nodes
            .join(node, mode, lease, now, &self.lease_clock)
            .map_err(|error| error.at(&*self.info.address))
    }

    async fn acquire(&self, node: &NodeId) -> Result<Acquired, StoreError> {
        self.open(operation::ACQUIRE)?;
        let now = self.tables.now();
        Ok(self.tables.lock().nodes.acquire(node, now, &self.lease_clock))
    }

    async fn share(&self, node: &NodeId, give: &Epochs) -> Result<Share, StoreError> {
        self.open(operation::SHARE)?;
        let now = self.tables.now();
        Ok(self.tables.lock().nodes.share(node, give, now, &self.lease_clock))
    }

    async fn renew(&self, node: &NodeId, lease: Duration, last: Option<LeaseMark>) -> Result<Renewal, StoreError> {
        self.open(operation::RENEW)?;
        let now = self.tables.now();
        Ok(self.tables.lock().nodes.renew(node, lease, last, now))
    }

    fn history(&self) -> History {
        History { changes: self.tables.changes(), losses: self.tables.losses(), server: None }
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        self.open(operation::LEAVE)?;
        self.tables.lock().nodes.leave(node);
        Ok(())
    }

    async fn evict(&self, seen: &NodeStatus) -> Result<bool, StoreError> {
        self.open(operation::EVICT)?;
        Ok(self.tables.lock().nodes.evict(&seen.node, seen.expires_at))
    }

    async fn fetch(&self, fetch: &Fetch) -> Result<Fetched, StoreError> {
        self.open(operation::FETCH)?;
        let now = self.tables.now();
        Ok(self.tables.lock().fetch(fetch, now))
    }

    async fn claim(&self, node: &NodeId, fetch: &Fetch) -> Result<Fetched, StoreError> {
        self.open(operation::CLAIM)?;
        let now = self.tables.now();
        Ok(self.tables.lock().claim(node, fetch, now))
    }

    async fn release(&self, node: &NodeId, rows: &[RowId]) -> Result<(), StoreError> {
        self.open(operation::RELEASE)?;
        self.tables.lock().release_held(node, rows);
        Ok(())
    }

    async fn reclaim(&self, node: &NodeId, thorough: bool) -> Result<Reclaimed, StoreError> {
        self.open(operation::RECLAIM)?;
        let now = self.tables.now();
        Ok(self.tables.lock().reclaim(node, thorough, now, &self.lease_clock))
    }

    async fn assign_partitions(&self, rows: &[(RowId, u8)]) -> Result<(), StoreError> {
        self.open(operation::ASSIGN_PARTITIONS)?;
        self.tables.lock().assign_partitions(rows);
        Ok(())
    }

    async fn promote_due(&self, rows: &[RowId]) -> Result<(), StoreError> {
        self.open(operation::PROMOTE_DUE)?;
        let now = self.tables.now();
        self.tables.lock().promote_due(rows, now);
        Ok(())
    }

    fn identify_sql(&self, _seqs: &[i64]) -> Option<String> {
        None
    }

    async fn identify(&self, seqs: &[i64]) -> Result<Vec<RowId>, StoreError> {
        self.open(operation::IDENTIFY)?;
        Ok(self.tables.lock().identify(seqs))
    }

    async fn writers(&self) -> Result<Writers, StoreError> {
        self.open(operation::WRITERS)?;
        Ok(self.tables.lock().writers())
    }

    async fn raise_read_point(&self) -> Result<bool, StoreError> {
        self.open(operation::RAISE_READ_POINT)?;
        self.tables.lock().raise_read_point();
        Ok(true)
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.open(operation::NOW)?;
        Ok(self.tables.now())
    }

    async fn begin_attempt(&self, node: &NodeId, fence: Fence, attempt: &BegunAttempt) -> Result<bool, StoreError> {
        self.open(operation::BEGIN_ATTEMPT)?;
        Ok(self.tables.lock().begin_attempt(node, fence, attempt))
    }

    async fn settle(&self, node: &NodeId, fence: Fence, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError> {
        self.open(operation::SETTLE)?;
        let now = self.tables.now();
        Ok(self.tables.lock().settle(node, fence, verdicts, now))
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
    async fn ring(&self) -> Result<(), StoreError> {
        self.open(operation::WAKE)?;
        self.tables.bell().send_modify(|rings| *rings += 1);
        Ok(())
    }

    async fn listen(&self) -> Result<Box<dyn Listener>, StoreError> {
        self.open(operation::LISTEN)?;
        Ok(Box::new(Ear(self.tables.bell().subscribe())))
    }
}

/// Receives the wake-ups of a store.
#[derive(Debug)]
struct Ear(watch::Receiver<u64>);

#[async_trait]
impl Listener for Ear {
    async fn rung(&mut self) -> Result<(), StoreError> {
        let gone = |_| StoreError::new(StoreErrorKind::Unavailable, operation::LISTEN, "the store is gone");
        self.0.changed().await.map_err(gone)
    }
}
