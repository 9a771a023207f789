use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use super::MemoryStore;
use crate::error::{StoreError, StoreErrorKind};
use crate::ownership::{Acquired, Fence, Mode, NodeId, Partitions, Reclaimed, Renewal, Share};
use crate::settle::Verdict;
use crate::store::{BegunAttempt, Fetch, Fetched, Listener, Store, StoreInfo, WakeUps, Writers};
use crate::write::{NewRow, Statement};

impl MemoryStore {
    pub(super) fn open(&self, operation: &'static str) -> Result<(), StoreError> {
        if !self.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let message = "the store is closed; take another handle with `reopen`";
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
        self.open("migrate the tables")
    }

    /// Empty: there is no SQL.
    fn migration_sql(&self) -> String {
        String::new()
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.open("check the tables")
    }

    async fn join(&self, node: &NodeId, mode: Mode, lease: Duration) -> Result<(), StoreError> {
        self.open("join the nodes of the table")?;
        let now = self.tables.now();
        self.tables.lock().nodes.join(node, mode, lease, now).map_err(|error| error.at(&*self.info.address))
    }

    async fn acquire(&self, node: &NodeId) -> Result<Acquired, StoreError> {
        self.open("acquire ownership")?;
        let now = self.tables.now();
        Ok(self.tables.lock().nodes.acquire(node, now))
    }

    async fn share(&self, node: &NodeId, give: Partitions) -> Result<Share, StoreError> {
        self.open("share the partitions out")?;
        let now = self.tables.now();
        Ok(self.tables.lock().nodes.share(node, give, now))
    }

    async fn renew(&self, node: &NodeId, lease: Duration) -> Result<Renewal, StoreError> {
        self.open("renew the lease")?;
        let now = self.tables.now();
        Ok(self.tables.lock().nodes.renew(node, lease, now))
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        self.open("leave the nodes of the table")?;
        self.tables.lock().nodes.leave(node);
        Ok(())
    }

    async fn fetch(&self, fetch: &Fetch) -> Result<Fetched, StoreError> {
        self.open("fetch events")?;
        let now = self.tables.now();
        Ok(self.tables.lock().fetch(fetch, now))
    }

    async fn claim(&self, node: &NodeId, fetch: &Fetch) -> Result<Fetched, StoreError> {
        self.open("claim events")?;
        let now = self.tables.now();
        Ok(self.tables.lock().claim(node, fetch, now))
    }

    async fn release(&self, node: &NodeId, seqs: &[i64]) -> Result<(), StoreError> {
        self.open("release events")?;
        self.tables.lock().release_held(node, seqs);
        Ok(())
    }

    async fn reclaim(&self, node: &NodeId, thorough: bool) -> Result<Reclaimed, StoreError> {
        self.open("reclaim events")?;
        let now = self.tables.now();
        Ok(self.tables.lock().reclaim(node, thorough, now))
    }

    async fn stamp(&self, rows: &[(i64, u8)]) -> Result<(), StoreError> {
        self.open("stamp events")?;
        self.tables.lock().stamp(rows);
        Ok(())
    }

    async fn ripen(&self, seqs: &[i64]) -> Result<(), StoreError> {
        self.open("take due times away")?;
        let now = self.tables.now();
        self.tables.lock().ripen(seqs, now);
        Ok(())
    }

    async fn writers(&self) -> Result<Writers, StoreError> {
        self.open("ask who writes")?;
        Ok(self.tables.lock().writers())
    }

    async fn begin_attempt(&self, node: &NodeId, fence: Fence, attempt: &BegunAttempt) -> Result<bool, StoreError> {
        self.open("announce an attempt")?;
        Ok(self.tables.lock().begin_attempt(node, fence, attempt))
    }

    async fn settle(&self, node: &NodeId, fence: Fence, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError> {
        self.open("settle events")?;
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
        self.open("wake the other nodes")?;
        self.tables.bell().send_modify(|rings| *rings += 1);
        Ok(())
    }

    async fn listen(&self) -> Result<Box<dyn Listener>, StoreError> {
        self.open("listen for other nodes")?;
        Ok(Box::new(Ear(self.tables.bell().subscribe())))
    }
}

/// Hears the rings of a store.
#[derive(Debug)]
struct Ear(watch::Receiver<u64>);

#[async_trait]
impl Listener for Ear {
    async fn rung(&mut self) -> Result<(), StoreError> {
        let gone = |_| StoreError::new(StoreErrorKind::Unavailable, "listen for other nodes", "the store is gone");
        self.0.changed().await.map_err(gone)
    }
}
