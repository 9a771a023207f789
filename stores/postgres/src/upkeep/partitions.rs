use pillarbox_core::ownership::NodeId;
use pillarbox_core::row::Status;
use pillarbox_core::store::{Blocked, PartitionBacklog};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::overview::count;
use crate::error::{Failure, no_row};
use crate::fetch::{from, size, wait};
use crate::row::Micros;
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

/// A page of the heads that others wait behind.
pub(super) async fn blocked(store: &Inner, above: i64, limit: usize) -> Result<Vec<Blocked>, Failure> {
    let (above, limit) = (from(above), size(limit));
    let mut session = store.sessions.session().await?;
    let rows = session.query_by_index(&store.sql.blocked, &[(&above, Type::INT8), (&limit, Type::INT8)]).await?;
    session.finish();
    rows.iter().map(decode).collect()
}

/// The row that a pending one waits behind.
pub(super) async fn head_of(store: &Inner, seq: i64) -> Result<Option<i64>, Failure> {
    let mut session = store.sessions.session().await?;
    let rows = session.query_by_index(&store.sql.head_of, &[(&seq, Type::INT8)]).await?;
    session.finish();
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?.flatten())
}

fn decode(row: &Row) -> Result<Blocked, Failure> {
    let (due_at, now): (Option<Micros>, Micros) = (row.try_get(7)?, row.try_get(10)?);
    Ok(Blocked {
        seq: row.try_get(0)?,
        event_id: row.try_get(1)?,
        event_type: row.try_get(2)?,
        key: row.try_get(3)?,
        handler: row.try_get(4)?,
        dead: row.try_get::<_, i16>(5)? == Status::Dead.code(),
        attempts: row.try_get(6)?,
        due_in: due_at.map(|due_at| wait(due_at, now)),
        last_error: row.try_get(8)?,
        waiting: count(row.try_get(9)?),
    })
}
