//! Queries and commands of operators. A query takes a connection that reads, a command the writer, like everything else.

mod blocked;
mod dead;
pub(crate) mod overview;
mod purge;
mod record;

use async_trait::async_trait;
use pillarbox_core::error::StoreError;
use pillarbox_core::store::operation;
use pillarbox_core::store::{
    Backlog, Blocked, Counts, DeadEvent, DeadFilter, NodeStatus, PartitionBacklog, Purge, Purged, Record, Upkeep,
};

use crate::SqliteStore;

#[async_trait]
impl Upkeep for SqliteStore {
    async fn counts(&self) -> Result<Counts, StoreError> {
        let mut connection = self.reader(operation::COUNTS).await?;
        overview::counts(&mut connection, self.sql()).await.map_err(self.failed(operation::COUNTS))
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        let mut connection = self.reader(operation::BACKLOG).await?;
        overview::backlog(&mut connection, self.sql()).await.map_err(self.failed(operation::BACKLOG))
    }

    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        let mut connection = self.reader(operation::NODES).await?;
        overview::nodes(&mut connection, self.sql(), self.lease_clock()).await.map_err(self.failed(operation::NODES))
    }

    async fn partitions(&self) -> Result<PartitionBacklog, StoreError> {
        let mut connection = self.reader(operation::PARTITIONS).await?;
        overview::partitions(&mut connection, self.sql()).await.map_err(self.failed(operation::PARTITIONS))
    }

    async fn blocked(&self, above: i64, limit: usize) -> Result<Vec<Blocked>, StoreError> {
        let mut connection = self.reader(operation::BLOCKED).await?;
        blocked::list(&mut connection, self.sql(), above, limit).await.map_err(self.failed(operation::BLOCKED))
    }

    async fn records(&self, event_id: &str) -> Result<Vec<Record>, StoreError> {
        let mut connection = self.reader(operation::RECORDS).await?;
        record::records(&mut connection, self.sql(), event_id).await.map_err(self.failed(operation::RECORDS))
    }

    async fn record(&self, seq: i64) -> Result<Option<Record>, StoreError> {
        let mut connection = self.reader(operation::RECORDS).await?;
        record::by_seq(&mut connection, self.sql(), seq).await.map_err(self.failed(operation::RECORDS))
    }

    async fn dead(&self, filter: &DeadFilter, above: i64, limit: usize) -> Result<Vec<DeadEvent>, StoreError> {
        let failed = self.failed(operation::DEAD);
        let mut connection = self.reader(operation::DEAD).await?;
        dead::list(&mut connection, self.sql(), filter, above, limit).await.map_err(failed)
    }

    async fn count_dead(&self, filter: &DeadFilter) -> Result<u64, StoreError> {
        let mut connection = self.reader(operation::COUNT_DEAD).await?;
        dead::count(&mut connection, self.sql(), filter).await.map_err(self.failed(operation::COUNT_DEAD))
    }

    async fn replay(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        let failed = self.failed(operation::REPLAY);
        let mut tx = self.begin(operation::REPLAY).await?;
        let replayed = dead::change(&mut tx, self.sql(), &self.sql().dead_replay, seqs).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(replayed)
    }

    async fn discard(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        let failed = self.failed(operation::DISCARD);
        let mut tx = self.begin(operation::DISCARD).await?;
        let discarded = dead::change(&mut tx, self.sql(), &self.sql().dead_discard, seqs).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(discarded)
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        let failed = self.failed(operation::PURGE);
        let mut tx = self.begin(operation::PURGE).await?;
        if let Some(error) = purge::check_nodes(&mut tx, self.sql(), purge).await.map_err(&failed)? {
            return Err(self.at(error));
        }
        let purged = purge::purge(&mut tx, self.sql(), purge).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(purged)
    }
}
