use std::sync::Arc;

use pillarbox_core::clock::Timestamp;
use pillarbox_core::ownership::NodeId;
use pillarbox_core::store::{Backlog, Counts, NodeStatus, PartitionBacklog};
use sqlx::{AssertSqlSafe, SqliteConnection, query_as};

use crate::fetch::micros;
use crate::sql::Sql;

/// Counts rows by state.
pub(super) async fn counts(connection: &mut SqliteConnection, sql: &Sql) -> Result<Counts, sqlx::Error> {
    let (new, retry, dead, all): (u64, u64, u64, u64) =
        query_as(AssertSqlSafe(Arc::clone(&sql.counts))).fetch_one(connection).await?;
    Ok(Counts { new, retry, dead, done: all.saturating_sub(new + retry + dead) })
}

/// What still has to be delivered, and what was given up.
pub(super) async fn backlog(connection: &mut SqliteConnection, sql: &Sql) -> Result<Backlog, sqlx::Error> {
    type Row = (i64, u64, u64, u64, u64, Option<i64>, Option<i64>);
    let (now, ready, passed, delayed, dead, since, created_at): Row =
        query_as(AssertSqlSafe(Arc::clone(&sql.backlog))).fetch_one(connection).await?;
    let oldest = since.into_iter().chain(created_at).min();
    Ok(Backlog { due: ready + passed, delayed, dead, oldest_due: oldest.map(|since| micros(now - since)) })
}

/// The registered nodes, oldest first.
pub(super) async fn nodes(connection: &mut SqliteConnection, sql: &Sql) -> Result<Vec<NodeStatus>, sqlx::Error> {
    let nodes: Vec<(String, String, i64, i64, u16)> =
        query_as(AssertSqlSafe(Arc::clone(&sql.nodes))).fetch_all(connection).await?;
    let status = |(node, mode, started_at, lease_left, partitions): (String, _, _, i64, _)| NodeStatus {
        node: NodeId::from_stored(&node),
        mode,
        started_at: Timestamp::from_micros(started_at),
        lease_left: (lease_left > 0).then(|| micros(lease_left)),
        partitions,
    };
    Ok(nodes.into_iter().map(status).collect())
}

/// Who owns the partitions, and how much is pending in them.
pub(super) async fn partitions(connection: &mut SqliteConnection, sql: &Sql) -> Result<PartitionBacklog, sqlx::Error> {
    let (unowned, pending, most_pending): (u16, u64, u64) =
        query_as(AssertSqlSafe(Arc::clone(&sql.partitions))).fetch_one(connection).await?;
    Ok(PartitionBacklog { unowned, pending, most_pending })
}
