use pillarbox_core::clock::Timestamp;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::{Backlog, Counts, NodeFigures, NodeStatus};
use sqlx::query_as;
use tokio::time::Instant;

use crate::fetch::micros;
use crate::store::Session;

/// Counts rows by state.
pub(super) async fn counts(session: &mut Session<'_>) -> sqlx::Result<Counts> {
    let (new, retry, dead, all, cancelled): (u64, u64, u64, u64, u64) =
        query_as(session.sql.counts.clone()).fetch_one(&mut *session.connection).await?;
    // The table takes no other status.
    let done = all.saturating_sub(new + retry + dead + cancelled);
    Ok(Counts { new, retry, dead, cancelled, done, unknown: 0 })
}

/// Counts the events that still have to be delivered, and those that were given up.
pub(super) async fn backlog(session: &mut Session<'_>) -> sqlx::Result<Backlog> {
    type Row = (i64, u64, u64, u64, u64, Option<i64>, Option<i64>);
    let (now, ready, passed, delayed, dead, since, created_at): Row =
        query_as(session.sql.backlog.clone()).fetch_one(&mut *session.connection).await?;
    let oldest = since.into_iter().chain(created_at).min();
    Ok(Backlog {
        due: ready + passed,
        delayed,
        dead,
        oldest_due: oldest.map(|since| micros(now.saturating_sub(since))),
    })
}

/// The registered nodes, oldest first.
pub(super) async fn nodes(session: &mut Session<'_>) -> sqlx::Result<Vec<NodeStatus>> {
    let asked = Instant::now();
    let (nodes, now) = statuses(session).await?;
    if let Some(now) = now {
        session.lease_clock.observe(&nodes, now, asked);
    }
    Ok(nodes)
}

/// The nodes, and the time at which they were read; without nodes it is not known.
pub(crate) async fn statuses(session: &mut Session<'_>) -> sqlx::Result<(Vec<NodeStatus>, Option<Timestamp>)> {
    type Row = (String, String, i64, i64, u16, i64, Option<i64>, Option<String>);
    let nodes: Vec<Row> = query_as(session.sql.nodes.clone()).fetch_all(&mut *session.connection).await?;
    let status = |(node, mode, started_at, lease_left, partitions, expires_at, lease, figures): Row| NodeStatus {
        node: NodeId::from_stored(&node),
        mode,
        started_at: Timestamp::from_micros(started_at),
        lease_left: (lease_left > 0).then(|| micros(lease_left)),
        partitions,
        expires_at: Timestamp::from_micros(expires_at),
        lease: lease.map(micros),
        figures: NodeFigures::of(figures.as_deref()),
    };
    let now = nodes.first().map(|(_, _, _, lease_left, _, expires_at, _, _)| expires_at - lease_left);
    Ok((nodes.into_iter().map(status).collect(), now.map(Timestamp::from_micros)))
}
