use pillarbox_core::ownership::{Epochs, NodeId, Partitions, RebalanceView, Rebalanced, spread};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::{Failure, no_row};
use crate::fetch::wait;
use crate::ownership::{evict_expired, give, locked, take};
use crate::row::Micros;
use crate::store::Inner;

/// Gives partitions back and takes those that are free of what the node should own.
pub(crate) async fn rebalance(store: &Inner, node: &NodeId, to_give: &Epochs) -> Result<Rebalanced, Failure> {
    let mut session = store.sessions.session().await?;
    let id = node.as_str();
    // Asked once a second by every node, so the usual answer takes no lock and writes nothing.
    let found = rebalance_view(node, &session.query(&store.sql.rebalance, &[(&id, Type::TEXT)]).await?)?;
    if let Some(answer) = found.settled(to_give) {
        session.finish();
        return Ok(answer);
    }

    let transaction = locked(store, &mut session).await?;
    let judged = evict_expired(store, &transaction).await?;
    give(store, &transaction, node, to_give).await?;
    let mut found = rebalance_view(node, &transaction.query_typed(&store.sql.rebalance, &[(&id, Type::TEXT)]).await?)?;
    found.next_expiry = judged.next_expiry(found.next_expiry);
    let taken = if found.registered { take(store, &transaction, node, found.wanted()).await? } else { Epochs::none() };
    transaction.commit().await?;
    session.finish();
    Ok(found.answer(&taken))
}

/// Nodes and partitions as `rebalance.sql` finds them.
fn rebalance_view(node: &NodeId, rows: &[Row]) -> Result<RebalanceView, Failure> {
    let row = rows.first().ok_or_else(no_row)?;
    let members: Vec<&str> = row.try_get(2)?;
    let members: Vec<NodeId> = members.into_iter().map(NodeId::from_stored).collect();
    let partitions = |index| -> Result<Partitions, Failure> {
        let numbers: Vec<i16> = row.try_get(index)?;
        Ok(numbers.into_iter().filter_map(|number| u8::try_from(number).ok()).collect())
    };
    let (owned, epochs): (Vec<i16>, Vec<i64>) = (row.try_get(3)?, row.try_get(4)?);
    let owned = owned.into_iter().zip(epochs);
    let epochs: Epochs = owned.filter_map(|(partition, epoch)| Some((u8::try_from(partition).ok()?, epoch))).collect();
    let (next_expiry, now): (Option<Micros>, Micros) = (row.try_get(7)?, row.try_get(8)?);
    Ok(RebalanceView {
        registered: row.try_get(0)?,
        stale: row.try_get(1)?,
        owned: epochs.partitions(),
        epochs,
        free: partitions(5)?,
        died: partitions(6)?,
        target: spread::target(&members, node),
        next_expiry: next_expiry.map(|end| wait(end, now)),
    })
}
