use pillarbox_core::ownership::{Epochs, NodeId, Partitions, Share, Sharing, spread};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::{Failure, no_row};
use crate::fetch::wait;
use crate::ownership::{clear_ended, give, locked, take};
use crate::row::Micros;
use crate::store::Inner;

/// Gives partitions back and takes those that are free of what the node should own.
pub(crate) async fn share(store: &Inner, node: &NodeId, to_give: &Epochs) -> Result<Share, Failure> {
    let mut session = store.sessions.session().await?;
    let id = node.as_str();
    // Asked once a second by every node, so the usual answer takes no lock and writes nothing.
    let found = sharing(node, &session.query(&store.sql.share, &[(&id, Type::TEXT)]).await?)?;
    if let Some(answer) = found.settled(to_give) {
        session.finish();
        return Ok(answer);
    }

    let transaction = locked(store, &mut session).await?;
    let judged = clear_ended(store, &transaction).await?;
    give(store, &transaction, node, to_give).await?;
    let mut found = sharing(node, &transaction.query_typed(&store.sql.share, &[(&id, Type::TEXT)]).await?)?;
    found.next_expiry = judged.next_expiry(found.next_expiry);
    let taken = if found.registered { take(store, &transaction, node, found.wanted()).await? } else { Epochs::none() };
    transaction.commit().await?;
    session.finish();
    Ok(found.answer(&taken))
}

/// Nodes and partitions as `share.sql` finds them.
fn sharing(node: &NodeId, rows: &[Row]) -> Result<Sharing, Failure> {
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
    Ok(Sharing {
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
