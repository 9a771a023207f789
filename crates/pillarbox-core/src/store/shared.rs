//! A store behind an [`Arc`] is a store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::Statement;
use super::{
    Backlog, BegunAttempt, Blocked, Counts, DeadEvent, DeadFilter, Fetch, Fetched, History, NodeStatus,
    PartitionBacklog, Purge, Purged, Record, RowId, Store, StoreInfo, Upkeep, WakeUps, Writers,
};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::ownership::{Acquired, Epochs, Fence, LeaseMark, Mode, NodeId, Reclaimed, Renewal, Share};
use crate::row::NewRow;
use crate::row::Verdict;

#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    fn info(&self) -> &StoreInfo {
        (**self).info()
    }
    fn insert<'a>(&self, rows: &'a [NewRow]) -> Vec<Statement<'a>> {
        (**self).insert(rows)
    }
    async fn migrate(&self) -> Result<(), StoreError> {
        (**self).migrate().await
    }
    fn migration_sql(&self) -> String {
        (**self).migration_sql()
    }
    async fn check(&self) -> Result<(), StoreError> {
        (**self).check().await
    }
    async fn join(&self, node: &NodeId, mode: Mode, lease: Duration) -> Result<(), StoreError> {
        (**self).join(node, mode, lease).await
    }
    async fn acquire(&self, node: &NodeId) -> Result<Acquired, StoreError> {
        (**self).acquire(node).await
    }
    async fn share(&self, node: &NodeId, give: &Epochs) -> Result<Share, StoreError> {
        (**self).share(node, give).await
    }
    async fn renew(&self, node: &NodeId, lease: Duration, last: Option<LeaseMark>) -> Result<Renewal, StoreError> {
        (**self).renew(node, lease, last).await
    }
    fn history(&self) -> History {
        (**self).history()
    }
    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        (**self).leave(node).await
    }
    async fn evict(&self, seen: &NodeStatus) -> Result<bool, StoreError> {
        (**self).evict(seen).await
    }
    async fn fetch(&self, fetch: &Fetch) -> Result<Fetched, StoreError> {
        (**self).fetch(fetch).await
    }
    async fn claim(&self, node: &NodeId, fetch: &Fetch) -> Result<Fetched, StoreError> {
        (**self).claim(node, fetch).await
    }
    async fn release(&self, node: &NodeId, rows: &[RowId]) -> Result<(), StoreError> {
        (**self).release(node, rows).await
    }
    async fn reclaim(&self, node: &NodeId, thorough: bool) -> Result<Reclaimed, StoreError> {
        (**self).reclaim(node, thorough).await
    }
    async fn assign_partitions(&self, rows: &[(RowId, u8)]) -> Result<(), StoreError> {
        (**self).assign_partitions(rows).await
    }
    async fn promote_due(&self, rows: &[RowId]) -> Result<(), StoreError> {
        (**self).promote_due(rows).await
    }
    fn identify_sql(&self, seqs: &[i64]) -> Option<String> {
        (**self).identify_sql(seqs)
    }
    async fn identify(&self, seqs: &[i64]) -> Result<Vec<RowId>, StoreError> {
        (**self).identify(seqs).await
    }
    async fn writers(&self) -> Result<Writers, StoreError> {
        (**self).writers().await
    }
    async fn now(&self) -> Result<Timestamp, StoreError> {
        (**self).now().await
    }
    async fn begin_attempt(&self, node: &NodeId, fence: Fence, attempt: &BegunAttempt) -> Result<bool, StoreError> {
        (**self).begin_attempt(node, fence, attempt).await
    }
    async fn settle(&self, node: &NodeId, fence: Fence, verdicts: &[Verdict]) -> Result<Vec<i64>, StoreError> {
        (**self).settle(node, fence, verdicts).await
    }
    fn settles_in_parallel(&self) -> bool {
        (**self).settles_in_parallel()
    }
    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        (**self).wake_ups()
    }
    async fn close(&self) {
        (**self).close().await;
    }
}

#[async_trait]
impl<S: Upkeep + ?Sized> Upkeep for Arc<S> {
    async fn counts(&self) -> Result<Counts, StoreError> {
        (**self).counts().await
    }
    async fn backlog(&self) -> Result<Backlog, StoreError> {
        (**self).backlog().await
    }
    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        (**self).nodes().await
    }
    async fn partitions(&self) -> Result<PartitionBacklog, StoreError> {
        (**self).partitions().await
    }
    async fn blocked(&self, above: i64, limit: usize) -> Result<Vec<Blocked>, StoreError> {
        (**self).blocked(above, limit).await
    }
    async fn records(&self, event_id: &str) -> Result<Vec<Record>, StoreError> {
        (**self).records(event_id).await
    }
    async fn record(&self, seq: i64) -> Result<Option<Record>, StoreError> {
        (**self).record(seq).await
    }
    async fn dead(&self, filter: &DeadFilter, above: i64, limit: usize) -> Result<Vec<DeadEvent>, StoreError> {
        (**self).dead(filter, above, limit).await
    }
    async fn count_dead(&self, filter: &DeadFilter) -> Result<u64, StoreError> {
        (**self).count_dead(filter).await
    }
    async fn replay(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        (**self).replay(seqs).await
    }
    async fn discard(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        (**self).discard(seqs).await
    }
    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        (**self).purge(purge).await
    }
}
