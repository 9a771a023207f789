use std::ops::RangeInclusive;
use std::time::Duration;

use pillarbox_core::ownership::{Holding, NodeId, Partitions, Share, spread};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::{Failure, no_row};
use crate::fetch::wait;
use crate::ownership::{give, locked, take};
use crate::row::Micros;
use crate::store::Inner;

/// Gives partitions back and takes those that are free of what the node should own.
///
/// It does not use the connection of the lease: it may wait for others who change ownership, and renewals must not.
pub(crate) async fn share(store: &Inner, node: &NodeId, to_give: Partitions) -> Result<Share, Failure> {
    let mut session = store.sessions.session().await?;
    let id = node.as_str();
    // Asked once a second by every node, so the usual answer takes no lock and writes nothing.
    let found = Found::read(&session.query(&store.sql.share, &[(&id, Type::TEXT)]).await?)?;
    if found.alive && !found.expired_nodes && found.owned.intersection(to_give).is_empty() {
        let target = spread::target(&found.members, node);
        if found.free.intersection(set(target.clone())).is_empty() {
            session.finish();
            return Ok(Share::Member(found.holding(Partitions::NONE, target)));
        }
    }

    let transaction = locked(store, &mut session).await?;
    transaction.query_typed(&store.sql.clear_nodes, &[]).await?;
    transaction.query_typed(&store.sql.free_partitions, &[]).await?;
    give(store, &transaction, node, to_give).await?;
    let found = Found::read(&transaction.query_typed(&store.sql.share, &[(&id, Type::TEXT)]).await?)?;
    let answer = if found.alive {
        let target = spread::target(&found.members, node);
        let gained = found.free.intersection(set(target.clone()));
        take(store, &transaction, node, gained).await?;
        Share::Member(found.holding(gained, target))
    } else {
        Share::Lost
    };
    transaction.commit().await?;
    session.finish();
    Ok(answer)
}

/// What a node should own.
type Target = Option<RangeInclusive<u8>>;

fn set(target: Target) -> Partitions {
    target.map_or(Partitions::NONE, Partitions::from)
}

/// Nodes and partitions as `share.sql` finds them.
struct Found {
    alive: bool,
    expired_nodes: bool,
    /// The living nodes that share the partitions out, in the order in which they joined.
    members: Vec<NodeId>,
    owned: Partitions,
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
        let (next_expiry, now): (Option<Micros>, Micros) = (row.try_get(6)?, row.try_get(7)?);
        Ok(Self {
            alive: row.try_get(0)?,
            expired_nodes: row.try_get(1)?,
            members: members.into_iter().map(NodeId::from_stored).collect(),
            owned: partitions(3)?,
            free: partitions(4)?,
            died: partitions(5)?,
            next_expiry: next_expiry.map(|end| wait(end, now)),
        })
    }

    /// What the node holds once it has taken `gained`.
    fn holding(&self, gained: Partitions, target: Target) -> Holding {
        Holding {
            owned: self.owned.union(gained),
            gained,
            unclean: gained.intersection(self.died),
            target,
            next_expiry: self.next_expiry,
        }
    }
}
