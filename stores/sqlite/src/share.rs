use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use pillarbox_core::ownership::{DIED, Epochs, Holding, Mode, NodeId, Partitions, Share, spread};
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
    let seen = Seen::read(connection, sql, node).await?;
    let changes = seen.stale || seen.registered && !(seen.given(give).is_empty() && seen.gained(give).is_empty());
    Ok(if changes { None } else { Some(seen.answer(give)) })
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
    let mut seen = Seen::read(connection, sql, node).await?;
    seen.next_expiry = seen.next_expiry.into_iter().chain(judged.spared_for).min();
    if seen.registered {
        give(connection, sql, node, given).await?;
        let take = query(AssertSqlSafe(Arc::clone(&sql.share_take))).bind(node.as_str());
        take.bind(numbers(seen.gained(given))).execute(connection).await?;
    }
    Ok(seen.answer(given))
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

/// Nodes and partitions, as one statement sees them.
#[derive(Default)]
struct Seen {
    registered: bool,
    /// True if something is to be cleared away: a node whose lease has ended, or the ownership of one that is gone.
    stale: bool,
    owned: Partitions,
    /// Of the partitions that are free or the node's own.
    epochs: Epochs,
    free: Partitions,
    /// Of the free ones, those whose last owner died.
    died: Partitions,
    target: Option<RangeInclusive<u8>>,
    next_expiry: Option<Duration>,
}

impl Seen {
    async fn read(connection: &mut SqliteConnection, sql: &Sql, node: &NodeId) -> Result<Self, sqlx::Error> {
        type Row = (Option<u8>, Option<i64>, Option<String>, Option<String>, Option<i64>);
        let read = query_as(AssertSqlSafe(Arc::clone(&sql.share_seen))).bind(node.as_str());
        let rows: Vec<Row> = read.fetch_all(connection).await?;
        let (mut seen, mut members) = (Self::default(), Vec::new());
        for (partition, epoch, name, mode, lease_left) in rows {
            let own = name.as_deref() == Some(node.as_str());
            match (partition, lease_left) {
                (Some(partition), _) => {
                    seen.epochs.extend(epoch.map(|epoch| (partition, epoch)));
                    seen.add_partition(partition, name.as_deref(), own);
                }
                (None, lease_left) => {
                    seen.add_node(own, lease_left.unwrap_or(0));
                    if mode.as_deref() == Some(Mode::Partitioned.name()) {
                        members.extend(name.as_deref().map(NodeId::from_stored));
                    }
                }
            }
        }
        seen.target = spread::target(&members, node);
        Ok(seen)
    }

    fn add_partition(&mut self, partition: u8, owner: Option<&str>, own: bool) {
        match owner {
            _ if own => self.owned.extend([partition]),
            None => self.free.extend([partition]),
            Some(DIED) => {
                self.free.insert(partition);
                self.died.insert(partition);
            }
            Some(_) => self.stale = true,
        }
    }

    fn add_node(&mut self, own: bool, lease_left: i64) {
        self.stale |= lease_left <= 0;
        if own {
            self.registered = true;
        } else if lease_left > 0 {
            self.next_expiry = self.next_expiry.into_iter().chain([micros(lease_left)]).min();
        }
    }

    /// The partitions of `give` that are the node's to give.
    fn given(&self, give: &Epochs) -> Partitions {
        let named = give.iter().filter(|(partition, epoch)| self.epochs.get(*partition) == Some(*epoch));
        self.owned.intersection(named.map(|(partition, _)| partition).collect())
    }

    /// The partitions that the node takes once it has given.
    fn gained(&self, give: &Epochs) -> Partitions {
        let target = self.target.clone().map_or(Partitions::NONE, Partitions::from);
        self.free.union(self.given(give)).intersection(target)
    }

    fn answer(self, give: &Epochs) -> Share {
        if !self.registered {
            return Share::Lost;
        }
        let gained = self.gained(give);
        let kept = self.epochs.of(self.owned.difference(self.given(give)));
        let taken = self.epochs.of(gained);
        let epochs: Epochs = kept.iter().chain(taken.iter().map(|(partition, epoch)| (partition, epoch + 1))).collect();
        Share::Member(Holding {
            owned: epochs.partitions(),
            epochs,
            gained,
            unclean: gained.intersection(self.died),
            target: self.target,
            next_expiry: self.next_expiry,
        })
    }
}
