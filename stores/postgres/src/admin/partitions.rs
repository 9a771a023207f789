use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::PartitionBacklog;
use tokio_postgres::Row;

use super::overview::count;
use crate::error::{Failure, no_row};
use crate::store::Inner;

/// Counts the partitions without an owner, all pending rows, and those of the fullest partition.
pub(super) async fn partitions(store: &Inner) -> Result<PartitionBacklog, Failure> {
    let mut session = store.sessions.session().await?;
    let rows = session.query_by_index(&store.sql.partitions, &[]).await?;
    session.finish();
    let row = rows.first().ok_or_else(no_row)?;
    Ok(PartitionBacklog {
        unowned: u16::try_from(row.try_get::<_, i64>(0)?).unwrap_or(u16::MAX),
        pending: count(row.try_get(1)?),
        most_pending: count(row.try_get(2)?),
    })
}

/// The owner of each partition that has one.
pub(super) async fn owners(store: &Inner) -> Result<Vec<(u8, NodeId)>, Failure> {
    let session = store.sessions.session().await?;
    let rows = session.query(&store.sql.partition_owners, &[]).await?;
    session.finish();
    let owner = |row: &Row| {
        let partition: i16 = row.try_get(0)?;
        Ok((u8::try_from(partition).unwrap_or_default(), NodeId::from_stored(row.try_get(1)?)))
    };
    rows.iter().map(owner).collect()
}
