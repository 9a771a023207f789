use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::PartitionBacklog;
use sqlx::query_as;

use crate::store::Session;

/// Counts the partitions without an owner, all pending rows, and those of the fullest partition.
pub(super) async fn partitions(session: &mut Session<'_>) -> sqlx::Result<PartitionBacklog> {
    let (unowned, pending, most_pending): (u16, u64, u64) =
        query_as(session.sql.partitions.clone()).fetch_one(&mut *session.connection).await?;
    Ok(PartitionBacklog { unowned, pending, most_pending })
}

/// The owner of each partition that has one.
pub(super) async fn owners(session: &mut Session<'_>) -> sqlx::Result<Vec<(u8, NodeId)>> {
    let owners: Vec<(u8, String)> =
        query_as(session.sql.partition_owners.clone()).fetch_all(&mut *session.connection).await?;
    Ok(owners.into_iter().map(|(partition, node)| (partition, NodeId::from_stored(&node))).collect())
}
