use std::sync::Arc;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::{Backlog, Counts, LeaseClock, NodeStatus, PartitionBacklog};
use sqlx::{AssertSqlSafe, SqliteConnection, query_as};
use tokio::time::Instant;

use crate::fetch::micros;
use crate::sql::Sql;

/// Counts rows by state.
pub(super) async fn counts(connection: &mut SqliteConnection, sql: &Sql) -> Result<Counts, sqlx::Error> {
    let (new, retry, dead, all): (u64, u64, u64, u64) =
        query_as(AssertSqlSafe(Arc::clone(&sql.counts))).fetch_one(connection).await?;
    Ok(Counts { new, retry, dead, done: all.saturating_sub(new + retry + dead) })
}

/// Counts the events that still have to be delivered, and those that were given up.
pub(super) async fn backlog(connection: &mut SqliteConnection, sql: &Sql) -> Result<Backlog, sqlx::Error> {
    type Row = (i64, u64, u64, u64, u64, Option<i64>, Option<i64>);
    let (now, ready, passed, delayed, dead, since, created_at): Row =
        query_as(AssertSqlSafe(Arc::clone(&sql.backlog))).fetch_one(connection).await?;
    let oldest = since.into_iter().chain(created_at).min();
    Ok(Backlog { due: ready + passed, delayed, dead, oldest_due: oldest.map(|since| micros(now - since)) })
}

/// The registered nodes, oldest first.
pub(super) async fn nodes(
    connection: &mut SqliteConnection,
    sql: &Sql,
    clock: &LeaseClock,
) -> Result<Vec<NodeStatus>, sqlx::Error> {
    let asked = Instant::now();
    let (nodes, now) = statuses(connection, sql).await?;
    if let Some(now) = now {
        clock.observe(&nodes, now, asked);
    }
    Ok(nodes)
}

/// The nodes, and the time at which they were read; without nodes it is not known.
pub(crate) async fn statuses(
    connection: &mut SqliteConnection,
    sql: &Sql,
) -> Result<(Vec<NodeStatus>, Option<Timestamp>), sqlx::Error> {
    type Row = (String, String, i64, i64, u16, i64, Option<i64>);
    let nodes: Vec<Row> = query_as(AssertSqlSafe(Arc::clone(&sql.nodes))).fetch_all(connection).await?;
    let status = |(node, mode, started_at, lease_left, partitions, expires_at, lease): Row| NodeStatus {
        node: NodeId::from_stored(&node),
        mode,
        started_at: Timestamp::from_micros(started_at),
        lease_left: (lease_left > 0).then(|| micros(lease_left)),
        partitions,
        expires_at: Timestamp::from_micros(expires_at),
        lease: lease.map(micros),
    };
    let now = nodes.first().map(|(_, _, _, lease_left, _, expires_at, _)| expires_at - lease_left);
    Ok((nodes.into_iter().map(status).collect(), now.map(Timestamp::from_micros)))
}

/// Counts the partitions without an owner, all pending rows, and those of the fullest partition.
pub(super) async fn partitions(connection: &mut SqliteConnection, sql: &Sql) -> Result<PartitionBacklog, sqlx::Error> {
    let (unowned, pending, most_pending): (u16, u64, u64) =
        query_as(AssertSqlSafe(Arc::clone(&sql.partitions))).fetch_one(connection).await?;
    Ok(PartitionBacklog { unowned, pending, most_pending })
}
