use std::time::Duration;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::row::Status;
use pillarbox_core::store::{Backlog, Counts, NodeFigures, NodeStatus};

use tokio::time::Instant;

use crate::error::{Failure, no_row};
use crate::fetch::wait;
use crate::row::Micros;
use crate::store::Inner;

/// The state as which `counts.sql` counts rows that were cancelled.
const CANCELLED_STATE: i16 = 4;

/// Counts rows by state.
pub(super) async fn counts(store: &Inner) -> Result<Counts, Failure> {
    let mut session = store.sessions.session().await?;
    let transaction = session.transaction().await?;
    // The one statement that does read the whole table.
    transaction.batch_execute("SET LOCAL enable_seqscan = on").await?;
    let rows = transaction.query_typed(&store.sql.counts, &[]).await?;
    transaction.commit().await?;
    session.finish();
    let mut counts = Counts::default();
    for row in rows {
        let (status, rows) = (row.try_get::<_, i16>(0)?, count(row.try_get(1)?));
        match Status::ALL.into_iter().find(|known| known.code() == status) {
            Some(Status::New) => counts.new = rows,
            Some(Status::Done) => counts.done = rows,
            Some(Status::Retry) => counts.retry = rows,
            Some(Status::Dead) => counts.dead = rows,
            None if status == CANCELLED_STATE => counts.cancelled = rows,
            None => counts.unknown += rows,
        }
    }
    Ok(counts)
}

/// Counts the events that still have to be delivered, and those that were given up.
pub(super) async fn backlog(store: &Inner) -> Result<Backlog, Failure> {
    let mut session = store.sessions.session().await?;
    let rows = session.query_by_index(&store.sql.backlog, &[]).await?;
    session.finish();
    let row = rows.first().ok_or_else(no_row)?;
    let (oldest, now): (Option<Micros>, Micros) = (row.try_get(3)?, row.try_get(4)?);
    Ok(Backlog {
        due: count(row.try_get(0)?),
        delayed: count(row.try_get(1)?),
        dead: count(row.try_get(2)?),
        oldest_due: oldest.map(|since| wait(now, since)),
    })
}

/// The registered nodes, oldest first.
pub(super) async fn nodes(store: &Inner) -> Result<Vec<NodeStatus>, Failure> {
    let session = store.sessions.session().await?;
    let asked = Instant::now();
    let rows = session.query(&store.sql.nodes, &[]).await?;
    session.finish();
    let (nodes, now) = statuses(&rows)?;
    if let Some(now) = now {
        store.lease_clock.observe(&nodes, now, asked);
    }
    Ok(nodes)
}

/// The nodes as `nodes.sql` finds them, and the time at which it did; without nodes it says none.
pub(crate) fn statuses(rows: &[tokio_postgres::Row]) -> Result<(Vec<NodeStatus>, Option<Timestamp>), Failure> {
    let status = |row: &tokio_postgres::Row| {
        let (started_at, expires_at, now): (Micros, Micros, Micros) =
            (row.try_get(2)?, row.try_get(3)?, row.try_get(5)?);
        Ok(NodeStatus {
            node: NodeId::from_stored(row.try_get(0)?),
            mode: row.try_get(1)?,
            started_at: Timestamp::from(started_at),
            lease_left: (expires_at > now).then(|| wait(expires_at, now)),
            expires_at: Timestamp::from(expires_at),
            lease: row.try_get::<_, Option<i64>>(6)?.map(span),
            partitions: u16::try_from(row.try_get::<_, i64>(4)?).unwrap_or(u16::MAX),
            figures: NodeFigures::of(row.try_get(7)?),
        })
    };
    let nodes = rows.iter().map(status).collect::<Result<_, Failure>>()?;
    let now = rows.first().map(|row| row.try_get::<_, Micros>(5)).transpose()?;
    Ok((nodes, now.map(Timestamp::from)))
}

/// A span of time as the tables count it.
fn span(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

pub(super) fn count(rows: i64) -> u64 {
    u64::try_from(rows).unwrap_or(0)
}
