use mysql_async::Row;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::PartitionBacklog;

use crate::answer::{count, text};
use crate::error::Failure;
use crate::store::Inner;

/// Counts the partitions without an owner, all pending rows, and those of the fullest partition.
pub(super) async fn partitions(store: &Inner) -> Result<PartitionBacklog, Failure> {
    let answers = store.sessions.run(&store.sql.partitions).await?;
    let Some(row) = answers.first(0) else { return Ok(PartitionBacklog::default()) };
    Ok(PartitionBacklog { unowned: partition_count(row, 0)?, pending: count(row, 1)?, most_pending: count(row, 2)? })
}

/// The owner of each partition that has one.
pub(super) async fn owners(store: &Inner) -> Result<Vec<(u8, NodeId)>, Failure> {
    let answers = store.sessions.run(&store.sql.partition_owners).await?;
    let owner = |row: &Row| {
        let partition = u8::try_from(partition_count(row, 0)?).unwrap_or_default();
        Ok((partition, NodeId::from_stored(text(row, 1)?.unwrap_or_default())))
    };
    answers.rows(0).iter().map(owner).collect()
}

/// A number of partitions.
pub(super) fn partition_count(row: &Row, index: usize) -> Result<u16, Failure> {
    Ok(u16::try_from(count(row, index)?).unwrap_or(u16::MAX))
}
