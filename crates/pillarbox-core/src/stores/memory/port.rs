use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;

use super::MemoryStore;
use crate::error::{StoreError, StoreErrorKind};
use crate::ownership::{Acquired, Mode, NodeId, Renewal};
use crate::settle::Verdict;
use crate::store::{Counts, Fetch, Fetched, Store, StoreInfo};
use crate::write::{NewRow, Statement};

impl MemoryStore {
    fn open(&self, operation: &'static str) -> Result<(), StoreError> {
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

    async fn settle(&self, node: &NodeId, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError> {
        self.open("settle events")?;
        let now = self.tables.now();
        Ok(self.tables.lock().settle(node, verdicts, now))
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.open("count events")?;
        Ok(self.tables.lock().counts())
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}
