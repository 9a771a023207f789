use std::ops::RangeInclusive;
use std::time::Duration;

use pillarbox_core::ownership::{Epochs, Holding, NodeId, Partitions, Share, spread};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::{Failure, no_row};
use crate::fetch::wait;
use crate::ownership::{clear_ended, give, locked, take};
use crate::row::Micros;
use crate::store::Inner;

/// Gives partitions back and takes those that are free of what the node should own.
///
pub(crate) async fn share(store: &Inner, node: &NodeId, to_give: &Epochs) -> Result<Share, Failure> {
    let mut session = store.sessions.session().await?;
    let id = node.as_str();
    // Asked once a second by every node, so the usual answer takes no lock and writes nothing.
    let found = Found::read(&session.query(&store.sql.share, &[(&id, Type::TEXT)]).await?)?;
    let gives = to_give.iter().any(|(partition, epoch)| found.epochs.get(partition) == Some(epoch));
    if found.alive && !found.expired_nodes && !gives {
        let target = spread::target(&found.members, node);
        if found.free.intersection(set(target.clone())).is_empty() {
            session.finish();
            return Ok(Share::Member(found.holding(&Epochs::none(), target)));
        }
    }

    let transaction = locked(store, &mut session).await?;
    let judged = clear_ended(store, &transaction).await?;
    give(store, &transaction, node, to_give).await?;
    let mut found = Found::read(&transaction.query_typed(&store.sql.share, &[(&id, Type::TEXT)]).await?)?;
    found.next_expiry = found.next_expiry.into_iter().chain(judged.spared_for).min();
    let answer = if found.alive {
        let target = spread::target(&found.members, node);
        let gained = take(store, &transaction, node, found.free.intersection(set(target.clone()))).await?;
        Share::Member(found.holding(&gained, target))
    } else {
        Share::Lost
    };
    transaction.commit().await?;
    session.finish();
    Ok(answer)
}

/// The partitions that a node should own.
type Target = Option<RangeInclusive<u8>>;

fn set(target: Target) -> Partitions {
    target.map_or(Partitions::NONE, Partitions::from)
}

/// Nodes and partitions as `share.sql` finds them.
struct Found {
    alive: bool,
    expired_nodes: bool,
    /// The nodes that share the partitions out, in the order in which they joined.
    members: Vec<NodeId>,
    epochs: Epochs,
    free: Partitions,
    /// Of the free ones, those whose last owner died.
    died: Partitions,
    next_expiry: Option<Duration>,
}

impl Found {
    fn read(rows: &[Row]) -> Result<Self, Failure> {
        let row = rows.first().ok_or_else(no_row)?;
        let members: Vec<&str> = row.try_get(2)?;
        let partitions = |index| -> Result<Partitions, Failure> {
            let numbers: Vec<i16> = row.try_get(index)?;
            Ok(numbers.into_iter().filter_map(|number| u8::try_from(number).ok()).collect())
        };
        let (owned, epochs): (Vec<i16>, Vec<i64>) = (row.try_get(3)?, row.try_get(4)?);
        let owned = owned.into_iter().zip(epochs);
        let (next_expiry, now): (Option<Micros>, Micros) = (row.try_get(7)?, row.try_get(8)?);
        Ok(Self {
            alive: row.try_get(0)?,
            expired_nodes: row.try_get(1)?,
            members: members.into_iter().map(NodeId::from_stored).collect(),
            epochs: owned.filter_map(|(partition, epoch)| Some((u8::try_from(partition).ok()?, epoch))).collect(),
            free: partitions(5)?,
            died: partitions(6)?,
            next_expiry: next_expiry.map(|end| wait(end, now)),
        })
    }

    /// The partitions that the node holds once it has taken `taken`.
    fn holding(&self, taken: &Epochs, target: Target) -> Holding {
        let gained = taken.partitions();
        let epochs: Epochs = self.epochs.iter().chain(taken.iter()).collect();
        Holding {
            owned: epochs.partitions(),
            epochs,
            gained,
            unclean: gained.intersection(self.died),
            target,
            next_expiry: self.next_expiry,
        }
    }
}
