//! What operators ask. Looking takes a connection that reads, changing takes the writer, like everything else.

mod blocked;
mod dead;
mod overview;
mod purge;
mod record;

use async_trait::async_trait;
use pillarbox_core::error::StoreError;
use pillarbox_core::store::{
    Backlog, Blocked, Counts, DeadEvent, DeadFilter, NodeStatus, PartitionBacklog, Purge, Purged, Record, Upkeep,
};

use crate::SqliteStore;

#[async_trait]
impl Upkeep for SqliteStore {
    async fn counts(&self) -> Result<Counts, StoreError> {
        let mut connection = self.reader("count events").await?;
        overview::counts(&mut connection, self.sql()).await.map_err(self.failed("count events"))
    }

    async fn backlog(&self) -> Result<Backlog, StoreError> {
        let mut connection = self.reader("count the backlog").await?;
        overview::backlog(&mut connection, self.sql()).await.map_err(self.failed("count the backlog"))
    }

    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        let mut connection = self.reader("list the nodes").await?;
        overview::nodes(&mut connection, self.sql()).await.map_err(self.failed("list the nodes"))
    }

    async fn partitions(&self) -> Result<PartitionBacklog, StoreError> {
        let mut connection = self.reader("look at the partitions").await?;
        overview::partitions(&mut connection, self.sql()).await.map_err(self.failed("look at the partitions"))
    }

    async fn blocked(&self, above: i64, limit: usize) -> Result<Vec<Blocked>, StoreError> {
        let mut connection = self.reader("list blocked keys").await?;
        blocked::list(&mut connection, self.sql(), above, limit).await.map_err(self.failed("list blocked keys"))
    }

    async fn records(&self, event_id: &str) -> Result<Vec<Record>, StoreError> {
        let mut connection = self.reader("read an event").await?;
        record::records(&mut connection, self.sql(), event_id).await.map_err(self.failed("read an event"))
    }

    async fn dead(&self, filter: &DeadFilter, above: i64, limit: usize) -> Result<Vec<DeadEvent>, StoreError> {
        let failed = self.failed("list DEAD events");
        let mut connection = self.reader("list DEAD events").await?;
        dead::list(&mut connection, self.sql(), filter, above, limit).await.map_err(failed)
    }

    async fn count_dead(&self, filter: &DeadFilter) -> Result<u64, StoreError> {
        let mut connection = self.reader("count DEAD events").await?;
        dead::count(&mut connection, self.sql(), filter).await.map_err(self.failed("count DEAD events"))
    }

    async fn replay(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        let failed = self.failed("replay DEAD events");
        let mut tx = self.begin("replay DEAD events").await?;
        let replayed = dead::change(&mut tx, self.sql(), &self.sql().dead_replay, seqs).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(replayed)
    }

    async fn discard(&self, seqs: &[i64]) -> Result<Vec<i64>, StoreError> {
        let failed = self.failed("discard DEAD events");
        let mut tx = self.begin("discard DEAD events").await?;
        let discarded = dead::change(&mut tx, self.sql(), &self.sql().dead_discard, seqs).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(discarded)
    }

    async fn purge(&self, purge: &Purge) -> Result<Purged, StoreError> {
        let failed = self.failed("purge events");
        let mut tx = self.begin("purge events").await?;
        if let Some(error) = purge::check_nodes(&mut tx, self.sql(), purge).await.map_err(&failed)? {
            return Err(self.at(error));
        }
        let purged = purge::purge(&mut tx, self.sql(), purge).await.map_err(&failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(purged)
    }
}
