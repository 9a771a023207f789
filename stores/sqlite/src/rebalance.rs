use pillarbox_core::ownership::{DIED, Epochs, NodeId, NodeMode, RebalanceView, Rebalanced, spread};
use sqlx::{query, query_as};

use crate::fetch::micros;
use crate::store::Session;
use crate::{json, ownership};

/// Answers if nothing changes hands, which takes no write: every node asks about once a second.
pub(crate) async fn probe(session: &mut Session<'_>, node: &NodeId, give: &Epochs) -> sqlx::Result<Option<Rebalanced>> {
    Ok(rebalance_view(session, node).await?.settled(give))
}

/// Evicts what has expired, gives what the node no longer wants, and takes what is free of its target.
///
/// The open transaction holds the write lock, so that no other node joins, leaves or rebalances in between.
pub(crate) async fn rebalance(session: &mut Session<'_>, node: &NodeId, given: &Epochs) -> sqlx::Result<Rebalanced> {
    let judged = ownership::evict_expired(session).await?;
    let mut found = rebalance_view(session, node).await?;
    found.next_expiry = judged.next_expiry(found.next_expiry);
    if !found.registered {
        return Ok(Rebalanced::Lost);
    }
    let give = query(session.sql.give_partitions.clone()).bind(node.as_str());
    give.bind(json::epochs(given)).execute(&mut *session.connection).await?;
    found.give(given);
    let taken = found.next_epochs();
    let partitions = json::array(taken.partitions().iter().map(i64::from));
    let take = query(session.sql.take_partitions.clone()).bind(node.as_str());
    take.bind(partitions).execute(&mut *session.connection).await?;
    Ok(found.answer(&taken))
}

/// Nodes and partitions, as one statement sees them. Of the epochs, those of partitions that are free or the node's own.
async fn rebalance_view(session: &mut Session<'_>, node: &NodeId) -> sqlx::Result<RebalanceView> {
    type Row = (Option<u8>, Option<i64>, Option<String>, Option<String>, Option<i64>);
    let read = query_as(session.sql.rebalance.clone()).bind(node.as_str());
    let rows: Vec<Row> = read.fetch_all(&mut *session.connection).await?;
    let (mut found, mut members) = (RebalanceView::default(), Vec::new());
    for (partition, epoch, name, mode, lease_left) in rows {
        let own = name.as_deref() == Some(node.as_str());
        if let Some(partition) = partition {
            found.epochs.extend(epoch.map(|epoch| (partition, epoch)));
            add_partition(&mut found, partition, name.as_deref(), own);
        } else {
            found.add_node(own, lease_left.filter(|left| *left > 0).map(micros));
            if mode.as_deref() == Some(NodeMode::Partitioned.name()) {
                members.extend(name.as_deref().map(NodeId::from_stored));
            }
        }
    }
    found.target = spread::target(&members, node);
    Ok(found)
}

fn add_partition(found: &mut RebalanceView, partition: u8, owner: Option<&str>, own: bool) {
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
