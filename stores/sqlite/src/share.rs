use std::sync::Arc;

use pillarbox_core::ownership::{DIED, Epochs, Mode, NodeId, Partitions, Share, Sharing, spread};
use pillarbox_core::store::LeaseClock;
use sqlx::{AssertSqlSafe, SqliteConnection, query, query_as};

use crate::fetch::micros;
use crate::sql::Sql;
use crate::{json, ownership};

/// Answers if nothing changes hands, which takes no write: every node asks about once a second.
pub(crate) async fn probe(
    connection: &mut SqliteConnection,
    sql: &Sql,
    node: &NodeId,
    give: &Epochs,
) -> Result<Option<Share>, sqlx::Error> {
    Ok(sharing(connection, sql, node).await?.settled(give))
}

/// Clears away what has expired, gives what the node no longer wants, and takes what is free of its target.
///
/// The open transaction holds the write lock, so that no other node joins, leaves or shares in between.
pub(crate) async fn share(
    connection: &mut SqliteConnection,
    sql: &Sql,
    clock: &LeaseClock,
    node: &NodeId,
    given: &Epochs,
) -> Result<Share, sqlx::Error> {
    let judged = ownership::clear_ended(connection, sql, clock).await?;
    let mut found = sharing(connection, sql, node).await?;
    found.next_expiry = judged.next_expiry(found.next_expiry);
    if !found.registered {
        return Ok(Share::Lost);
    }
    give(connection, sql, node, given).await?;
    found.give(given);
    let taken = found.next_epochs();
    let take = query(AssertSqlSafe(Arc::clone(&sql.share_take))).bind(node.as_str());
    take.bind(numbers(taken.partitions())).execute(connection).await?;
    Ok(found.answer(&taken))
}

/// Frees those of `given` that the node owns under the epochs named.
async fn give(connection: &mut SqliteConnection, sql: &Sql, node: &NodeId, given: &Epochs) -> Result<(), sqlx::Error> {
    let give = query(AssertSqlSafe(Arc::clone(&sql.share_give))).bind(node.as_str());
    give.bind(json::epochs(given)).execute(connection).await?;
    Ok(())
}

fn numbers(partitions: Partitions) -> String {
    json::array(partitions.iter().map(i64::from))
}

/// Nodes and partitions, as one statement sees them. Of the epochs, those of partitions that are free or the node's own.
async fn sharing(connection: &mut SqliteConnection, sql: &Sql, node: &NodeId) -> Result<Sharing, sqlx::Error> {
    type Row = (Option<u8>, Option<i64>, Option<String>, Option<String>, Option<i64>);
    let read = query_as(AssertSqlSafe(Arc::clone(&sql.share_seen))).bind(node.as_str());
    let rows: Vec<Row> = read.fetch_all(connection).await?;
    let (mut found, mut members) = (Sharing::default(), Vec::new());
    for (partition, epoch, name, mode, lease_left) in rows {
        let own = name.as_deref() == Some(node.as_str());
        if let Some(partition) = partition {
            found.epochs.extend(epoch.map(|epoch| (partition, epoch)));
            add_partition(&mut found, partition, name.as_deref(), own);
        } else {
            found.add_node(own, lease_left.filter(|left| *left > 0).map(micros));
            if mode.as_deref() == Some(Mode::Partitioned.name()) {
                members.extend(name.as_deref().map(NodeId::from_stored));
            }
        }
    }
    found.target = spread::target(&members, node);
    Ok(found)
}

fn add_partition(found: &mut Sharing, partition: u8, owner: Option<&str>, own: bool) {
    match owner {
        _ if own => found.owned.extend([partition]),
        None => found.free.extend([partition]),
        Some(DIED) => {
            found.free.insert(partition);
            found.died.insert(partition);
        }
        Some(_) => found.stale = true,
    }
}
