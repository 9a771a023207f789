//! What operators ask: one statement each, most of them on indexes of their own.

mod dead;
mod overview;
mod partitions;
mod purge;
mod record;

use async_trait::async_trait;
use pillarbox_core::error::StoreError;
use pillarbox_core::store::{
    Backlog, Blocked, Counts, DeadEvent, DeadFilter, NodeStatus, PartitionBacklog, Purge, Purged, Record, Upkeep,
};

use crate::PostgresStore;

#[async_trait]
impl Upkeep for PostgresStore {
    async fn counts(&self) -> Result<Counts, StoreError> {
        self.inner().sessions.call("count events", overview::counts(self.inner())).await
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        self.inner().sessions.call("count the backlog", overview::backlog(self.inner())).await
    }

    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        self.inner().sessions.call("list the nodes", overview::nodes(self.inner())).await
    }

    async fn partitions(&self) -> Result<PartitionBacklog, StoreError> {
        self.inner().sessions.call("look at the partitions", partitions::partitions(self.inner())).await
    }

    async fn blocked(&self, above: i64, limit: usize) -> Result<Vec<Blocked>, StoreError> {
        self.inner().sessions.call("list blocked keys", partitions::blocked(self.inner(), above, limit)).await
    }

    async fn records(&self, event_id: &str) -> Result<Vec<Record>, StoreError> {
        self.inner().sessions.call("read an event", record::records(self.inner(), event_id)).await
    }

    async fn dead(&self, filter: &DeadFilter, above: i64, limit: usize) -> Result<Vec<DeadEvent>, StoreError> {
        self.inner().sessions.call("list DEAD events", dead::list(self.inner(), filter, above, limit)).await
    }

    async fn count_dead(&self, filter: &DeadFilter) -> Result<u64, StoreError> {
        self.inner().sessions.call("count DEAD events", dead::count(self.inner(), filter)).await
    }

    async fn replay(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        let replay = dead::change(self.inner(), &self.inner().sql.replay, seqs);
        self.inner().sessions.call("replay DEAD events", replay).await
    }

    async fn discard(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        let discard = dead::change(self.inner(), &self.inner().sql.discard, seqs);
        self.inner().sessions.call("discard DEAD events", discard).await
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        self.inner().sessions.call("purge events", purge::purge(self.inner(), purge)).await
    }
}
