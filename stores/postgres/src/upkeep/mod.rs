//! What operators ask: one statement each, most of them on indexes of their own.

mod dead;
mod overview;
mod purge;
mod record;

use async_trait::async_trait;
use pillarbox_core::error::StoreError;
use pillarbox_core::store::{Backlog, Counts, DeadEvent, DeadFilter, NodeStatus, Purge, Purged, Record, Upkeep};

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

    async fn record(&self, event_id: &str) -> Result<Option<Record>, StoreError> {
        self.inner().sessions.call("read an event", record::record(self.inner(), event_id)).await
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
