use std::time::Duration;

use mysql_async::Row;
use pillarbox_core::clock::Timestamp;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::row::Status;
use pillarbox_core::store::{Backlog, Counts, NodeFigures, NodeStatus};
use tokio::time::Instant;

use super::partitions::partition_count;
use crate::answer::{EPOCH, count, int, optional_int, text, time};
use crate::error::Failure;
use crate::fetch::wait;
use crate::store::Inner;

/// The state as which `counts.sql` counts rows that were cancelled.
const CANCELLED_STATE: i64 = 4;

/// Counts rows by state.
pub(super) async fn counts(store: &Inner) -> Result<Counts, Failure> {
    let answers = store.sessions.run(&store.sql.counts).await?;
    let mut counts = Counts::default();
    for row in answers.rows(0) {
        let (status, count) = (int(row, 0)?, count(row, 1)?);
        match Status::ALL.into_iter().find(|known| i64::from(known.code()) == status) {
            Some(Status::New) => counts.new = count,
            Some(Status::Done) => counts.done = count,
            Some(Status::Retry) => counts.retry = count,
            Some(Status::Dead) => counts.dead = count,
            None if status == CANCELLED_STATE => counts.cancelled = count,
            None => counts.unknown += count,
        }
    }
    Ok(counts)
}

/// Counts the events that still have to be delivered, and the ones given up.
pub(super) async fn backlog(store: &Inner) -> Result<Backlog, Failure> {
    let answers = store.sessions.run(&store.sql.backlog).await?;
    let Some(row) = answers.first(0) else { return Ok(Backlog::default()) };
    let oldest = |index| Ok::<Option<Duration>, Failure>(optional_int(row, index)?.map(wait));
    Ok(Backlog {
        due: count(row, 0)? + count(row, 1)?,
        delayed: count(row, 2)?,
        dead: count(row, 3)?,
        oldest_due: oldest(4)?.max(oldest(5)?),
    })
}

/// The registered nodes, oldest first.
pub(super) async fn nodes(store: &Inner) -> Result<Vec<NodeStatus>, Failure> {
    let mut session = store.sessions.session().await?;
    let asked = Instant::now();
    let answers = session.run(&store.sql.nodes).await?;
    session.finish();
    let (nodes, now) = statuses(answers.rows(0))?;
    if let Some(now) = now {
        store.lease_clock.observe(&nodes, now, asked);
    }
    Ok(nodes)
}

/// The nodes as `nodes.sql` finds them, and the time at which it did; without nodes it says none.
pub(crate) fn statuses(rows: &[Row]) -> Result<(Vec<NodeStatus>, Option<Timestamp>), Failure> {
    let node = |row: &Row| {
        Ok(NodeStatus {
            node: NodeId::from_stored(text(row, 0)?.unwrap_or_default()),
            mode: text(row, 1)?.unwrap_or_default().to_owned(),
            started_at: time(row, 2)?.unwrap_or(EPOCH),
            lease_left: Some(int(row, 3)?).filter(|left| *left > 0).map(wait),
            partitions: partition_count(row, 4)?,
            expires_at: time(row, 5)?.unwrap_or(EPOCH),
            lease: optional_int(row, 6)?.map(wait),
            figures: NodeFigures::of(text(row, 7)?),
        })
    };
    let nodes = rows.iter().map(node).collect::<Result<_, Failure>>()?;
    let now = rows.first().map(|row| Ok::<_, Failure>(int(row, 5)? - int(row, 3)?)).transpose()?;
    Ok((nodes, now.map(Timestamp::from_micros)))
}
